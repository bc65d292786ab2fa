"""The report: its content by hand-worked values, and the page in a real browser."""

import json
import re
import shutil

import h5py
import numpy as np
import pandas
import pytest
import scipy.sparse

from ddclust import DDC, DDCLoss
from ddclust.baselines import DEC
from ddclust.data.batches import Scaling
from ddclust.results import clustering_key, read_names
from ddclust.show.report import content, pictures, report_page
from ddclust.show.report.items import ShownItems
from ddclust.show.style import COLOURS

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HOSTILE = "<script>document.title = 'caught'</script><img src=x onerror=\"document.title='caught'\">"


@pytest.fixture(scope="module")
def fitted():
    """60 images of two kinds, hostile names, classes and one unknown class, and a fitted model."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 60, size=(60, 8, 8), dtype=np.uint8)
    X[:30, :, :4] += 150
    X[30:, :4, :] += 150
    y = np.repeat([0, 1], 30)
    y[59] = -1
    names = [f"{HOSTILE} {i}" for i in range(60)]
    model = DDC(2, n_init=3, n_vote=2, max_iter=120, random_state=0, n_jobs=1).fit(X)
    return model, X, {"item_names": names, "truth": y, "class_names": [HOSTILE, "upper"], "title": HOSTILE}


@pytest.fixture(scope="module")
def page(fitted):
    model, X, options = fitted
    return report_page(model, X, **options)


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


def test_certain_and_doubtful_items():
    confidence = np.array([0.9, 0.5, 0.8, 0.99, 0.6])
    members = np.array([0, 2, 3, 4])
    assert content.most_certain(confidence, members, 2).tolist() == [3, 0]
    assert content.least_certain(confidence, members, 3).tolist() == [4, 2, 0]


def test_nearest_cluster():
    probabilities = np.array([[0.6, 0.1, 0.3], [0.7, 0.3, 0.0], [0.0, 1.0, 0.0]])
    assert content.nearest_cluster(probabilities, np.array([0]), 0) == 2
    assert content.nearest_cluster(probabilities, np.array([0, 1]), 0) == 1
    assert content.nearest_cluster(probabilities, np.array([], dtype=int), 0) is None
    assert content.nearest_cluster(np.ones((3, 1)), np.array([0]), 0) is None


def test_sample_holds_some_of_every_cluster():
    labels = np.zeros(10_000, dtype=int)
    labels[:3] = 1
    sample = content.sample_of_clusters(labels, 100, np.random.default_rng(0))
    assert 1 in labels[sample]
    assert 100 <= len(sample) <= 110
    assert len(np.unique(sample)) == len(sample)
    assert content.sample_of_clusters(labels[:50], 100, np.random.default_rng(0)).tolist() == list(range(50))


def test_simplex_corners():
    places = content.in_the_simplex(np.eye(3, dtype=np.float32))
    np.testing.assert_allclose(places, content.SIMPLEX_CORNERS)
    assert places.min() >= 0
    assert places.max() <= 1
    sides = np.linalg.norm(places - np.roll(places, 1, axis=0), axis=1)
    np.testing.assert_allclose(sides, 1, atol=1e-3)  # of equal length


@pytest.mark.parametrize(
    "hidden", [np.zeros((40, 3)), np.random.default_rng(0).normal(size=(3, 2)), np.ones((6, 1))]
)
def test_places_of_degenerate_representations_are_finite(hidden):
    places = content.neighbourhoods(hidden.astype(np.float32), 0)
    assert np.isfinite(places).all()
    assert places.min() >= -1e-6
    assert places.max() <= 1 + 1e-6


def test_telling_words():
    X = scipy.sparse.csr_array([[1.0, 0, 0.2], [1, 0, 0.2], [0, 3, 0.2], [0, 1, 0.2]])
    words = ["cat", "stock", "said"]
    assert content.telling_words(X, np.array([0, 0, 1, 1]), 0, words, 2) == ["cat"]
    assert content.telling_words(X, np.array([0, 0, 1, 1]), 1, words, 2) == ["stock"]
    assert content.telling_words(X, np.array([0, 0, 1, 1]), 2, words, 2) == []  # an empty cluster


def test_telling_features_and_their_boxes():
    X = np.array([[0.0, 5, 1], [0, 5, 2], [10, 5, 1], [10, 5, 2]])
    features = content.telling_features(X, np.array([0, 0, 1, 1]), 0, ["a", "constant", "noise"], 3)
    assert features == [{"name": "a", "own": [0.0] * 5, "others": [1.0] * 5}]


def test_kernel_is_sorted_by_cluster():
    hidden = np.array([[0.0], [9], [0], [9]], dtype=np.float32)
    matrix, borders = content.kernel_matrix(hidden, np.array([0, 1, 0, 1]), DDCLoss())
    assert borders == [0.5]
    assert (matrix[:2, :2] == 255).all()
    assert (matrix[:2, 2:] < 10).all()


def test_against_truth_leaves_unknown_items_out():
    found = content.against_truth(np.array([0, 0, 1, 1]), np.array([1, 1, 0, -1]), ["a", "b"], 2)
    assert found["accuracy"] == 1
    assert found["unknown"] == 1
    assert found["counts"].tolist() == [[0, 2], [1, 0]]
    assert found["classes"] == ["b", "a"]  # in the order of the clusters


@pytest.mark.parametrize(
    ("labels", "confidence", "agreement", "outcome", "words"),
    [
        ([0, 0, 1, 1], 0.9, 1, "budget", None),
        ([0, 0, 0, 0], 0.9, 1, "budget", "1 of 2 clusters are empty"),
        ([0, 0, 0, 1], 0.9, 1, "budget", "holds 75 %"),
        ([0, 0, 1, 1], 0.7, 1, "budget", "mean confidence is only 0.70"),
        ([0, 0, 1, 1], 0.9, 0.5, "budget", "50 % of the voting networks"),
        ([0, 0, 1, 1], 0.9, 1, "failed", "1 of 1 runs failed: no luck"),
        ([0, 0, 1, 1], 0.9, 1, "interrupted", "interrupted"),
    ],
)
def test_warnings(labels, confidence, agreement, outcome, words):
    runs = [{"outcome": outcome, "error": "no luck" if outcome == "failed" else None}]
    found = content.warnings_of(
        runs, np.array(labels), np.full(4, confidence), np.full(4, float(agreement)), 2
    )
    assert (words is None) == (not found)
    assert words is None or any(words in warning for warning in found)


@pytest.mark.parametrize(
    ("shape", "expected"), [((4, 9, 8), (4, 9, 8)), ((4, 9, 8, 3), (4, 9, 8, 3)), ((4, 3, 9, 8), (4, 9, 8, 3)), ((4, 2, 9, 8), (4, 9, 8))]
)  # fmt: skip
def test_pictures_of_every_layout(shape, expected):
    X = np.random.default_rng(0).integers(0, 255, size=shape, dtype=np.uint8)
    found = pictures.as_pictures(X, Scaling.of(X))
    assert found.shape == expected
    if shape == expected:
        np.testing.assert_array_equal(found, X)


def test_large_pictures_are_shrunk_in_their_proportions():
    assert pictures.shrunk(np.zeros((2, 100, 50), dtype=np.uint8), 32).shape == (2, 32, 16)


def test_sprite_holds_every_picture():
    small = np.arange(5 * 2 * 3, dtype=np.uint8).reshape(5, 2, 3)
    sheet, columns = pictures.sprite(small)
    for i, picture in enumerate(small):
        row, column = divmod(i, columns)
        np.testing.assert_array_equal(sheet[2 * row : 2 * row + 2, 3 * column : 3 * column + 3], picture)


def test_what_users_named_stays_text(page):
    assert HOSTILE not in page
    assert "&lt;script&gt;document.title" in page
    assert data_of(page)["map"]["item"][0] == f"{HOSTILE} 0"
    assert page.count("<script") == 2  # the data and ours


def test_the_page_and_its_script_have_one_palette(page):
    assert data_of(page)["colours"] == list(COLOURS)
    for cluster in (0, 1):
        assert f'<span class="dot" style="background:{COLOURS[cluster]}">' in page


def test_nothing_is_fetched(page):
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", page)
    assert "http://" not in page
    assert "https://" not in page
    assert "default-src 'none'" in page


def test_pictures_are_explained(page, fitted):
    model, _, _ = fitted
    assert page.count("red where a pixel speaks for the cluster") == 10 * model.n_clusters


def test_vote_and_truth_are_there(page, fitted):
    model, _, _ = fitted
    assert "unanimous votes of 2" in page
    assert "items of unknown class are left out" in page
    for run in model.runs_:
        assert str(run["seed"]) in page


def test_vectors_with_names_and_without_truth(blobs):
    X, _ = blobs
    table = pandas.DataFrame(X, columns=["length", HOSTILE])
    page = report_page(DDC(3, n_init=1, max_iter=50, random_state=0).fit(table), X)
    assert "length" in page
    assert "Known classes" not in page
    assert "<option>simplex</option><option>representation</option>" in page  # three clusters


def test_texts():
    texts = ["the cat chased a mouse", "cats and mice", "stocks fell in New York", "the stock market"] * 8
    model = DDC(2, n_init=1, max_iter=60, random_state=0).fit(texts)
    page = report_page(model, texts)
    assert "Telling words" in page
    assert "cats and mice" in page
    assert re.search(r"the network relies on: .*(cat|mice|mous|stock|market|fell)", page)


def test_sparse_and_dec():
    rng = np.random.default_rng(0)
    X = scipy.sparse.csr_array(rng.random((60, 12)) * (rng.random((60, 12)) < 0.4))
    model = DEC(4, layers=(8, 3), layer_iter=20, finetune_iter=20, max_iter=20, random_state=0).fit(X)
    assert "found without labels by DEC" in report_page(model, X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": 59}, "X has 59 items, but the model was fitted on 60"),
        ({"truth": [0] * 59}, "truth has 59 items"),
        ({"item_names": ["a"]}, "item_names has 1 items"),
        ({"class_names": ["a"]}, "the code 1, but there are 1 class_names"),
    ],
)
def test_wrong_data(fitted, change, message):
    model, X, options = fitted
    options = options | change
    with pytest.raises(ValueError, match=message):
        report_page(model, X[: options.pop("X", 60)], **options)


def test_pictures_of_dec_are_not_clipped():
    X = np.zeros((40, 8, 8), dtype=np.uint8)
    X[np.arange(40), np.arange(40) % 8] = np.linspace(10, 200, 8, dtype=np.uint8)
    model = DEC(2, layers=(8, 3), layer_iter=5, finetune_iter=5, max_iter=5, random_state=0).fit(X)
    shown = ShownItems(model, X, np.random.default_rng(0))
    np.testing.assert_array_equal(shown.pictures(np.array([3, 0]), 32), X[[3, 0]])


@pytest.mark.filterwarnings("ignore:The clustering uses")
@pytest.mark.parametrize("kind", ["one pixel high", "series of texts", "hdf5", "coo", "no class known"])
def test_whatever_can_be_fitted_has_a_report(kind, tmp_path):
    rng = np.random.default_rng(0)
    X, options = rng.random((30, 6)), {}
    if kind == "one pixel high":
        X = rng.integers(0, 255, size=(30, 1, 16), dtype=np.uint8)
    elif kind == "series of texts":
        X = pandas.Series(
            [f"word{i} {'cat' if i % 2 else 'stock'} mouse" for i in range(30)], index=range(29, -1, -1)
        )
    elif kind == "hdf5":
        X = h5py.File(tmp_path / "x.h5", "w").create_dataset("x", data=rng.random((30, 8, 8)))
    elif kind == "coo":
        X = scipy.sparse.coo_array(X * (X > 0.5))
    else:
        options = {"truth": [None] * 30}
    page = report_page(DDC(2, n_init=1, max_iter=5, random_state=0).fit(X), X, **options)
    if kind == "series of texts":
        captions = data_of(page)["map"]["caption"]
        assert captions[3:5] == ["word3 cat mouse", "word4 stock mouse"]


@pytest.mark.slow
def test_many_items_and_clusters_give_a_small_page():
    """A million items, by a model that was told so: what is shown is a sample, and the page says so."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 255, size=(1000, 8, 8), dtype=np.uint8)
    model = DDC(40, n_init=1, max_iter=5, random_state=0).fit(X)
    model.labels_ = rng.integers(0, 40, size=1_000_000)
    model.probabilities_ = rng.dirichlet(np.ones(40), size=1_000_000).astype(np.float32)
    model.agreement_ = np.ones(1_000_000)
    big = np.lib.stride_tricks.as_strided(
        X, (1_000_000, 8, 8), (0, *X.strides[1:])
    )  # one image again and again
    page = report_page(model, big, truth=model.labels_)
    assert len(page) < 4_000_000
    assert re.search(r"A sample of 2,0\d\d of 1,000,000 items", page)


# In a real browser.


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("there is no Chromium to open the page in")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(params=["light", "dark"])
def tab(browser, page, tmp_path, request):
    """The page opened from disk, with everything that it complains of or asks for."""
    file = tmp_path / "report.html"
    file.write_text(page, encoding="utf-8")
    context = browser.new_context(color_scheme=request.param, viewport={"width": 1100, "height": 900})
    tab = context.new_page()
    tab.complaints, tab.asked = [], []
    tab.on("console", lambda message: tab.complaints.append(message.text))
    tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
    tab.on("request", lambda request: tab.asked.append(request.url))
    tab.goto(file.as_uri())
    yield tab
    assert tab.complaints == []
    assert [url for url in tab.asked if not url.startswith(("data:", "blob:"))] == [file.as_uri()]
    assert tab.title() != "caught"
    context.close()


def place_of_first_item(tab):
    """Where the script draws the first item of the map, by the same rule as its own."""
    return tab.evaluate(
        """() => {
            const data = JSON.parse(document.getElementById("data").textContent);
            const canvas = document.getElementById("map");
            const [w, h] = [canvas.clientWidth, canvas.clientHeight];
            const high = Math.min(w, h) - 36, wide = Math.min(w - 60, 1.8 * high);
            const {x, y} = data.map.layouts.representation;
            return [(w - wide) / 2 + x[0] * wide, (h - high) / 2 + (1 - y[0]) * high];
        }"""
    )


def test_pointing_at_an_item_shows_it(tab):
    tab.locator("#map").scroll_into_view_if_needed()
    box = tab.locator("#map").bounding_box()
    x, y = place_of_first_item(tab)
    tab.mouse.move(box["x"] + x, box["y"] + y)
    tip = tab.locator("#tip")
    assert tip.is_visible()
    assert HOSTILE in tip.inner_text()
    assert "confidence" in tip.inner_text()
    assert tip.locator("canvas").count() == 1
    colours = tip.locator("canvas").evaluate(
        "c => new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size"
    )
    assert colours > 5  # a picture, not an empty one
    tab.mouse.move(5, 5)
    assert not tip.is_visible()


def test_clusters_are_renamed_and_exported(tab, tmp_path, fitted):
    tab.locator("input[data-cluster='1']").fill("zebras <b>")
    assert tab.locator(".legend button").nth(1).inner_text() == "zebras <b>"
    with tab.expect_download() as download:
        tab.locator("#export").click()
    file = tmp_path / "names.json"
    download.value.save_as(file)
    labels = fitted[0].labels_
    key = clustering_key(labels)
    assert json.loads(file.read_text()) == {
        "format": "ddclust-names",
        "key": key,
        "names": {"1": "zebras <b>"},
    }
    assert read_names(file, labels, 2) == {1: "zebras <b>"}
    with pytest.raises(ValueError, match="of another fit"):
        read_names(file, 1 - labels, 2)
    tab.reload()
    assert tab.locator("input[data-cluster='1']").input_value() == "zebras <b>"
    tab.locator("input[data-cluster='1']").fill("")
    tab.asked.clear(), tab.reload()
    assert tab.locator(".legend button").nth(1).inner_text() == "cluster 1"


def test_zooming_colouring_and_hiding_change_the_map(tab):
    def picture():
        return tab.locator("#map").evaluate("canvas => canvas.toDataURL()")

    seen = [picture()]
    for action in (
        lambda: tab.locator("#zoom-in").click(),
        lambda: tab.locator("#zoom-reset").click(),
        lambda: tab.locator("#colour-by").select_option("confidence"),
        lambda: tab.locator("#colour-by").select_option("cluster"),
        lambda: tab.locator(".legend button").first.click(),
    ):
        action()
        seen.append(picture())
    assert seen[1] != seen[0] == seen[2] == seen[4]
    assert len({seen[2], seen[3], seen[5]}) == 3


def test_the_legend_is_of_what_is_coloured(tab):
    tab.locator("#colour-by").select_option("truth")
    shown = [
        legend.get_attribute("data-of") for legend in tab.locator(".legend").all() if legend.is_visible()
    ]
    assert shown == ["truth"]
    assert "upper" in tab.locator(".legend[data-of=truth]").inner_text()


def test_simplex_and_representation_are_two_layouts(browser, blobs, tmp_path):
    X, _ = blobs
    file = tmp_path / "report.html"
    file.write_text(report_page(DDC(3, n_init=1, max_iter=50, random_state=0).fit(X), X), encoding="utf-8")
    tab = browser.new_page()
    errors = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto(file.as_uri())
    maps = []
    for name in ("simplex", "representation"):
        tab.locator("#layout").select_option(name)
        maps.append(tab.locator("#map").evaluate("canvas => canvas.toDataURL()"))
    assert maps[0] != maps[1]
    assert errors == []
    tab.close()


def test_narrow_screens(browser, page, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(page, encoding="utf-8")
    context = browser.new_context(viewport={"width": 360, "height": 700}, has_touch=True, is_mobile=True)
    tab = context.new_page()
    tab.goto(file.as_uri())
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    tab.locator("#map").scroll_into_view_if_needed()
    box = tab.locator("#map").bounding_box()
    x, y = place_of_first_item(tab)
    tab.touchscreen.tap(box["x"] + x, box["y"] + y)
    tip = tab.locator("#tip")
    assert tip.is_visible()
    inside = tip.bounding_box()
    assert inside["x"] >= 0
    assert inside["x"] + inside["width"] <= 360
    context.close()
