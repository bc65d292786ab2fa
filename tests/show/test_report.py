"""The report: its content by hand-worked values, and the page in a real browser."""

import base64
import copy
import csv
import hashlib
import io
import json
import re
import shutil

import h5py
import numpy as np
import pandas
import pytest
import scipy.sparse
from PIL import Image
from sklearn.datasets import make_blobs

from ddclust import DDC, DDCLoss, pictures
from ddclust.baselines import DEC
from ddclust.choosing.selection import CRITERIA
from ddclust.data.batches import Scaling
from ddclust.results import clustering_key, read_names
from ddclust.show import explain
from ddclust.show.report import InlineReport, content, report_page
from ddclust.show.report.items import ShownItems
from ddclust.show.report.sections import listing
from ddclust.show.report.sections.training import BEST
from ddclust.show.style import COLOURS
from ddclust.storage.tables import csv_text, name_in
from helpers import quick

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


@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_page_says_which_run_is_chosen(fitted, criterion):
    model, X, _ = fitted
    other = copy.copy(model).set_params(selection=criterion)
    assert f"The run with {BEST[criterion]} is chosen, among those" in report_page(other, X)


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


def test_box_plots_are_in_the_units_of_the_data():
    X = np.array([[0.0, 5, 1], [0, 5, 2], [1000, 5, 1], [1000, 5, 2]])
    (plot,) = content.box_plots(X, np.array([0, 0, 1, 1]), 0, ["a", "constant", "noise"], 3)
    assert (plot["name"], plot["own"], plot["others"]) == ("a", [0.0] * 5, [1.0] * 5)
    assert plot["medians"] == ["0", "1,000"]
    assert plot["ticks"] == [(i / 5, f"{200 * i:,}") for i in range(6)]


@pytest.mark.parametrize("known", [True, False])
def test_k_means_that_does_as_well_is_named(blobs, known):
    X, y = blobs
    codes = y if known else None
    words = "its accuracy is 1.000, that of these clusters 1.000" if known else "adjusted Rand index 1.00"
    assert words in content.k_means_as_well(X, y, codes)
    mixed = np.random.default_rng(0).permutation(y)
    found = content.k_means_as_well(X, mixed, codes)
    assert (found is not None) == known  # without classes, other clusters are not worse ones
    uneven = np.repeat([0, 1, 2], [110, 20, 20])
    assert ("sizes are far apart" in content.k_means_as_well(X, uneven, codes)) == (not known)
    X = np.random.default_rng(0).normal(size=(150, 2))
    assert content.k_means_as_well(X, y, codes) is None


def test_k_means_that_does_better_or_differs_much_is_named():
    X = np.repeat([[0.0], [9.0]], [30, 10], axis=0) + np.linspace(0, 1, 40)[:, None]
    best = (X[:, 0] > 5).astype(int)
    halves = np.arange(40) % 2
    assert "k-means fits the known classes better: its accuracy is 1.000" in content.k_means_as_well(
        X, halves, best
    )
    assert "The sizes are far apart" in content.k_means_as_well(X, halves, None)


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
        ([0, 0, 1, 1], 0.9, 0.5, "budget", "mean agreement is only 0.50"),
        ([0, 0, 1, 1], 0.9, np.nan, "budget", None),
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
    columns = pictures.columns_for(5)
    sheet = pictures.sprite(small, columns)
    for i, picture in enumerate(small):
        row, column = divmod(i, columns)
        np.testing.assert_array_equal(sheet[2 * row : 2 * row + 2, 3 * column : 3 * column + 3], picture)


def test_what_users_named_stays_text(page):
    assert HOSTILE not in page
    assert "&lt;script&gt;document.title" in page
    assert data_of(page)["items"]["names"][0] == f"{HOSTILE} 0"
    assert page.count("<script") == 2  # the data and ours


def test_only_the_page_s_own_script_and_style_may_run(page):
    """The policy names them by their hashes, and nothing is left that would need more."""
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    assert "unsafe" not in policy
    for tag, source in (("style", "style-src"), ("script", "script-src")):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.S)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{source} 'sha256-{digest}'" in policy
    assert not re.search(r"<[^>]*\s(style|on\w+)=", page[: page.index('<script type="application/json"')])


def test_the_page_and_its_script_have_one_palette(page):
    assert data_of(page)["colours"] == list(COLOURS)
    for cluster in (0, 1):
        assert f".c{cluster} {{ --own: {COLOURS[cluster]}; }}" in page
        assert f'<span class="dot c{cluster}">' in page


def test_nothing_is_fetched(page):
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", page)
    assert "http://" not in page
    assert "https://" not in page
    assert "default-src 'none'" in page


def test_pictures_are_explained_where_that_says_something(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 30, size=(60, 16, 16), dtype=np.uint8)
    X[:30, 3:6, 3:6] = 250
    X[30:, 10:13, 10:13] = 250
    model = DDC(2, n_init=1, max_iter=150, random_state=0).fit(X)
    assert report_page(model, X).count("red where it speaks for the cluster") == 12
    monkeypatch.setattr(explain, "FOCUS", 100)
    assert "What the network looks at" not in report_page(model, X)


def test_what_went_wrong_is_at_the_top(fitted):
    model, X, options = fitted
    skipped = {"<b>a.png": "not an image", "b.png": "too many pixels"}
    page = report_page(model, X, **options, warnings=["The disk <i>smells</i>."], skipped=skipped)
    top = page[: page.index("<nav>")]
    assert "The disk &lt;i&gt;smells&lt;/i&gt;." in top
    assert "2 files could not be read and are left out" in top
    assert "&lt;b&gt;a.png: not an image" in top
    assert "k-means explains these data as well" in top


def test_vote_and_truth_are_there(page, fitted):
    model, _, _ = fitted
    assert "items with full agreement" in page
    assert "the best 2 vote on each item" in page
    assert "about how often another run gives the item the same cluster" in page
    assert "items of unknown class are left out" in page
    for run in model.runs_:
        assert str(run["seed"]) in page


def test_errors_among_the_most_certain_are_drawn(page):
    assert page.count("<polyline") >= 2
    assert "as expected from the confidence (dashed), and by the known classes" in page
    lines = content.risk_lines(np.array([0.9, 0.6, 0.8]), None, None)
    assert list(lines["lines"]) == ["expected"]
    assert lines["lines"]["expected"][-1] == [1.0, 1.0]
    assert lines["highest"] == pytest.approx(0.7 / 3)


def test_a_single_run_claims_no_agreement(blobs):
    X, _ = blobs
    page = report_page(quick(3, max_iter=20).fit(X), X)
    assert "agree" not in page[page.index('<h2 id="overview">') : page.index("<h3>Sizes</h3>")]
    assert "since there is only one run" in page


def test_vectors_with_names_and_without_truth(blobs):
    X, _ = blobs
    table = pandas.DataFrame(X, columns=["length", HOSTILE])
    page = report_page(DDC(3, n_init=1, max_iter=50, random_state=0).fit(table), X)
    assert "length" in page
    assert "Known classes" not in page
    assert "<option>representation</option><option>simplex</option>" in page  # three clusters
    listed = data_of(page)["items"]
    assert sorted(listed["columns"]) == sorted(["length", HOSTILE])
    np.testing.assert_allclose(listed["values"][listed["columns"].index("length")], X[:, 0], rtol=1e-5)


def test_a_model_that_gives_data_frames():
    X, _ = make_blobs(40, centers=2, random_state=0)
    model = quick(2, max_iter=20).fit(X).set_output(transform="pandas")
    assert report_page(model, X) == report_page(model.set_output(transform="default"), X)


def test_texts():
    texts = ["the cat chased a mouse", "cats and mice", "stocks fell in New York", "the stock market"] * 8
    model = DDC(2, n_init=1, max_iter=60, random_state=0).fit(texts)
    page = report_page(model, texts)
    assert "Telling words" in page
    assert "cats and mice" in page
    assert re.search(r"the network relies on: .*(cat|mice|mouse|stock|market|fell)", page)
    assert re.search(r"<span>(chased|mouse)</span>", page)  # whole words
    assert not re.search(r"<span>(chase|mous)</span>", page)
    assert all(re.search("cat|mouse|mice|stock", c["proposed"]) for c in data_of(page)["clusters"])


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
        texts = data_of(page)["items"]["texts"]
        assert texts[3:5] == ["word3 cat mouse", "word4 stock mouse"]


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
    assert len(page) < 10_000_000
    assert re.search(r"A sample of 2,0\d\d of 1,000,000 items", page)
    assert re.search(r"it holds a sample of 10\d,\d\d\d of 1,000,000 items \(labels.csv has all\)", page)


def test_a_page_holds_pictures_up_to_a_budget_and_says_so(fitted, monkeypatch):
    model, X, options = fitted
    monkeypatch.setattr(listing, "PER_SHEET", 20)
    monkeypatch.setattr(listing, "PICTURE_BYTES", 3000)
    page = report_page(model, X, **options)
    shown = data_of(page)["items"]
    assert shown["n"] == 60
    n_pictures = len(shown["pictures"]["items"])
    assert 20 <= n_pictures < 60
    assert f"pictures of {n_pictures} of them" in page
    assert sum(map(len, shown["pictures"]["sheets"])) <= 3000


def test_long_texts_are_shortened_and_the_page_says_so(monkeypatch):
    texts = [f"{'cats mice' if i % 2 else 'stocks shares'} {i}" for i in range(40)]
    model = DDC(2, n_init=1, max_iter=5, random_state=0).fit(texts)
    monkeypatch.setattr(listing, "TEXT_BYTES", 400)
    page = report_page(model, texts)
    assert data_of(page)["items"]["texts"][1] == "cats mice…"
    assert "the first 10 characters of texts" in page


def test_photographs_are_shown_better_than_the_network_sees_them(tmp_path):
    rng = np.random.default_rng(0)
    names = [f"{i}.png" for i in range(12)]
    for name in names:
        Image.fromarray(rng.integers(0, 255, size=(90, 60, 3), dtype=np.uint8)).save(tmp_path / name)
    (tmp_path / "3.png").unlink()  # gone since the fit
    X = rng.integers(0, 255, size=(12, 12, 8, 3), dtype=np.uint8)
    model = DDC(2, n_init=1, max_iter=5, random_state=0).fit(X)
    found = data_of(report_page(model, X, item_names=names, image_folder=tmp_path))["items"]["pictures"]
    assert (found["height"], found["width"]) == (64, 43)
    assert len(found["large"]) == 12
    plain = data_of(report_page(model, X, item_names=names))["items"]["pictures"]
    assert (plain["height"], plain["width"], plain["large"]) == (12, 8, {})


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
    """Where the script draws the first item of the map."""
    return tab.evaluate("place(0)")


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
    assert tab.locator(".legend button").nth(1).inner_text().startswith("like <script>")  # as proposed


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


@pytest.mark.slow
def test_the_report_works_in_a_notebook(browser, page):
    tab = browser.new_page(viewport={"width": 900, "height": 800})
    complaints = []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.set_content(f"<h1>Notebook</h1>{InlineReport(page)._repr_html_()}")
    assert tab.locator("iframe").bounding_box()["height"] == 700
    report = tab.frame_locator("iframe")
    map_ = report.locator("#map")
    before = map_.evaluate("canvas => canvas.toDataURL()")
    report.locator("#zoom-in").click()
    assert map_.evaluate("canvas => canvas.toDataURL()") != before
    with tab.expect_download():
        report.locator("#export").click()
    with pytest.raises(Exception, match="cross-origin|Blocked a frame"):
        map_.evaluate("() => parent.document.title")
    assert complaints == []
    tab.close()


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


def open_page(browser, tmp_path, page, **options):
    """The page in a new tab."""
    file = tmp_path / "report.html"
    file.write_text(page, encoding="utf-8")
    tab = browser.new_context(**options).new_page()
    tab.complaints = []
    tab.on("console", lambda message: tab.complaints.append(message.text))
    tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
    tab.goto(file.as_uri())
    return tab


def saved(tab, button):
    """The rows of the CSV file that a button saves."""
    with tab.expect_download() as download:
        tab.locator(button).click()
    return list(csv.reader(io.StringIO(download.value.path().read_text(encoding="utf-8"), newline="")))


TEXTS = [
    f"{'The cat chased a mouse' if i % 2 else 'Stocks fell in New York'}, number {i:02d}. "
    + "And so on. " * 60
    for i in range(60)
]


@pytest.fixture(scope="module")
def page_of_texts():
    names = [f"=text {i:02d}" for i in range(60)]
    model = DDC(2, n_init=1, max_iter=60, random_state=0).fit(TEXTS)
    truth = ["animals" if i % 2 else "money" for i in range(60)]
    truth[7] = "money"  # is not of the main class of its cluster
    return report_page(model, TEXTS, item_names=names, truth=truth), model


@pytest.fixture(scope="module")
def page_of_table():
    rng = np.random.default_rng(0)
    table = pandas.DataFrame(
        {
            "length (cm)": np.repeat([10.0, 20, 30], 30) + rng.normal(size=90),
            "price, in €": np.repeat([1e5, 3e5, 1e5], 30) + rng.normal(scale=1e4, size=90),
        }
    )
    model = quick(3).fit(table)
    assert (
        len(np.unique(model.labels_))
        == len(set(zip(model.labels_, np.repeat([0, 1, 2], 30), strict=True)))
        == 3
    )
    truth = np.repeat([0, 1, 2], 30)
    truth[0] = 2
    return report_page(model, table, truth=truth), model, table


def test_an_item_is_enlarged_with_its_neighbours_in_the_gallery(tab):
    cards = tab.locator("#cluster-0 .gallery").first.locator(".item")
    viewer = tab.locator("#viewer")
    assert not viewer.is_visible()
    cards.nth(1).click()
    assert viewer.is_visible()
    assert tab.locator("#item-number").inner_text() == f"2 of {cards.count()}"
    assert viewer.locator("canvas").bounding_box()["width"] > 200  # from 8 pixels
    names = [tab.locator("#viewed h3").inner_text()]
    tab.locator("#item-after").click()
    names.append(tab.locator("#viewed h3").inner_text())
    tab.keyboard.press("ArrowLeft")
    tab.keyboard.press("ArrowLeft")
    names.append(tab.locator("#viewed h3").inner_text())
    assert len(set(names)) == 3
    assert tab.locator("#item-before").is_disabled()
    tab.keyboard.press("ArrowLeft")  # there is nothing before the first
    assert tab.locator("#item-number").inner_text().startswith("1 of")
    tab.keyboard.press("Escape")
    assert not viewer.is_visible()


def test_an_item_of_the_map_is_enlarged(tab):
    tab.locator("#map").scroll_into_view_if_needed()
    box = tab.locator("#map").bounding_box()
    x, y = place_of_first_item(tab)
    tab.mouse.move(box["x"] + x, box["y"] + y)
    name = tab.locator("#tip b").inner_text()
    tab.mouse.click(box["x"] + x, box["y"] + y)
    assert tab.locator("#viewed h3").inner_text() == name
    tab.locator("#close-viewer").click()
    assert not tab.locator("#viewer").is_visible()


def test_all_items_page_by_page(browser, tmp_path, page_of_texts):
    page, model = page_of_texts
    tab = open_page(browser, tmp_path, page)
    seen = []
    while True:
        seen += [item.removeprefix("✗ ") for item in tab.locator("#list .item").all_inner_texts()]
        if tab.locator("#page-after").is_disabled():
            break
        tab.locator("#page-after").click()
    assert tab.locator("#page-number").inner_text() == "page 3 of 3"
    assert sorted(seen) == sorted(f"=text {i:02d}" for i in range(60))
    confidence = model.probabilities_.max(axis=1)[[int(name.split()[1]) for name in seen]]
    assert (np.diff(confidence) < 1e-3).all()  # the most certain first
    tab.locator("#page-before").click()
    assert tab.locator("#page-number").inner_text() == "page 2 of 3"
    cluster = int(model.labels_[1])
    tab.locator(f"[data-list='{cluster}']").click()
    assert tab.locator("#found").inner_text() == f"{(model.labels_ == cluster).sum()} items"
    assert tab.complaints == []
    tab.context.close()


def test_search_in_names_and_texts(browser, tmp_path, page_of_texts):
    tab = open_page(browser, tmp_path, page_of_texts[0])
    tab.locator("#search").fill("MOUSE number 07")
    assert tab.locator("#list .item").all_inner_texts() == ["✗ =text 07"]
    tab.locator("#search").fill("=text 12")
    assert tab.locator("#list .item").all_inner_texts() == ["=text 12"]
    tab.locator("#search").fill("elephant")
    assert tab.locator("#found").inner_text() == "0 items"
    tab.locator("#search").fill("")
    assert tab.locator("#found").inner_text() == "60 items"
    tab.locator("#only-wrong").check()
    assert tab.locator("#list .item").all_inner_texts() == ["✗ =text 07"]
    assert tab.complaints == []
    tab.context.close()


def test_a_cluster_is_saved_as_csv_without_formulas(browser, tmp_path, page_of_texts):
    page, model = page_of_texts
    tab = open_page(browser, tmp_path, page)
    cluster = int(model.labels_[1])
    tab.locator(f"input[data-cluster='{cluster}']").fill('=cmd|"x", cats')
    header, *rows = saved(tab, f"[data-save='{cluster}']")
    assert header == ["item", "cluster", "name", "confidence", "second cluster", "known class", "text"]
    own = np.flatnonzero(model.labels_ == cluster)
    assert sorted(row[0] for row in rows) == sorted(f"'=text {i:02d}" for i in own)
    assert {tuple(row[1:3]) for row in rows} == {(str(cluster), '\'=cmd|"x", cats')}
    by_name = {row[0]: row for row in rows}
    assert by_name["'=text 07"][5] == "money"
    assert by_name["'=text 07"][6] == TEXTS[7].strip()
    tab.locator("#search").fill("number 07.")
    assert len(saved(tab, "#save-found")) == 2
    assert tab.complaints == []
    tab.context.close()


def test_csv_of_the_page_is_that_of_the_result_folder(browser, tmp_path, page_of_texts):
    """Names that look like formulas are written as in labels.csv, and read as what they were."""
    tab = open_page(browser, tmp_path, page_of_texts[0])
    names = [
        "=1+1",
        "-1",
        "+1e5",
        "a;=b",
        "\t=c",
        "'=d",
        '"@e',
        "\uff1df",
        "plain, 'g'",
        "h\n-i",
        "'tis",
        "12",
        "",
    ]
    for name in names:
        line = tab.evaluate("name => [name, 1].map(cell).join(',') + '\\n'", name)
        assert line == csv_text([name, "1"], [])
        ((cell, _),) = csv.reader(io.StringIO(line, newline=""))
        assert name_in(cell) == name
    tab.context.close()


def test_wrong_texts_and_rows_are_framed_and_marked(browser, tmp_path, page_of_texts, page_of_table):
    for page, name in ((page_of_texts[0], "=text 07"), (page_of_table[0], "item 0")):
        tab = open_page(browser, tmp_path, page)
        tab.locator("#only-wrong").check()
        (item,) = tab.locator("#list .wrong").all()
        assert item.locator(".item").inner_text() == f"✗ {name}"
        look = item.evaluate(
            "e => { const s = getComputedStyle(e); return [s.borderTopColor, s.borderTopWidth, s.outlineColor, s.outlineWidth] }"
        )
        assert "rgb(180, 35, 24)" in look
        assert "2px" in look
        tab.context.close()


def test_rows_show_values_by_their_columns(browser, tmp_path, page_of_table):
    page, _, table = page_of_table
    tab = open_page(browser, tmp_path, page)
    heads = tab.locator("#cluster-0 .gallery").first.locator("th").all_inner_texts()
    columns = heads[2:4]
    assert heads == ["item", "confidence", *columns, "known class"]
    assert set(columns) == set(table.columns)
    tab.locator("#order").select_option("number")
    row = tab.locator("#list tr").nth(1).locator("td").all_inner_texts()
    assert row[0] == "✗ item 0"
    for name, value in zip(columns, row[2:4], strict=True):
        assert float(value.replace(",", "")) == pytest.approx(table[name][0], rel=1e-5)
    tab.locator("#list .item").first.click()
    assert tab.locator("#viewed td").all_inner_texts() == [columns[0], row[2], columns[1], row[3]]
    assert tab.complaints == []
    tab.context.close()


def test_the_map_is_coloured_by_any_column(browser, tmp_path, page_of_table):
    page, _, table = page_of_table
    tab = open_page(browser, tmp_path, page)
    before = tab.locator("#map").evaluate("canvas => canvas.toDataURL()")
    tab.locator("#colour-by").select_option("length (cm)")
    assert tab.locator("#map").evaluate("canvas => canvas.toDataURL()") != before
    low, high = (float(tab.locator(f"#scale-{end}").inner_text().lstrip("≤≥ ")) for end in ("low", "high"))
    assert 8 < low < 11
    assert 29 < high < 33
    length = table["length (cm)"].to_numpy()
    colours = [tab.evaluate(f"colour({p})") for p in (length.argmin(), length.argmax())]
    assert colours == ["rgb(90 95 176)", "rgb(223 193 31)"]  # both ends of the scale
    assert tab.locator(".legend[data-of=scale]").is_visible()
    tab.context.close()


@pytest.fixture(scope="module")
def page_of_columns():
    """A table with words, dates and gaps."""
    rng = np.random.default_rng(0)
    kinds = np.repeat([0, 1], 40)
    table = pandas.DataFrame(
        {
            "length": kinds + rng.normal(scale=0.1, size=80),
            "city": np.array(["Oslo", "Rome"], dtype=object)[kinds],
            "since": pandas.date_range("2020-01-01", periods=80),
        }
    )
    table.loc[3, "city"] = None
    return report_page(quick(2).fit(table), table)


def test_the_map_is_coloured_by_words_and_dates(browser, tmp_path, page_of_columns):
    tab = open_page(browser, tmp_path, page_of_columns)
    tab.locator("#colour-by").select_option("city")
    legend = tab.locator(".legend[data-of=levels]")
    assert legend.locator("> span").all_inner_texts() == ["Rome", "Oslo", "empty"]  # the most frequent first
    colours = [tab.evaluate(f"colour({p})") for p in (79, 0, 3)]
    assert colours == [COLOURS[0], COLOURS[1], "#888"]
    dots = legend.locator(".dot").evaluate_all("dots => dots.map(dot => dot.style.getPropertyValue('--own'))")
    assert dots == colours
    tab.locator("#colour-by").select_option("since")
    assert not legend.is_visible()
    ends = [tab.locator(f"#scale-{end}").inner_text().lstrip("≤≥ ") for end in ("low", "high")]
    assert ends == ["2020-01-03", "2020-03-18"]
    assert [tab.evaluate(f"colour({p})") for p in (0, 79)] == ["rgb(90 95 176)", "rgb(223 193 31)"]
    assert tab.complaints == []
    tab.context.close()


def test_the_page_opens_on_the_map(browser, tmp_path, page_of_columns):
    for width, height in ((1280, 900), (390, 844)):
        tab = open_page(browser, tmp_path, page_of_columns, viewport={"width": width, "height": height})
        assert tab.locator("#map").bounding_box()["y"] < height / 2
        tab.context.close()


def test_clusters_without_items_are_not_in_the_tree():
    tree = np.array([[0.0, 1, 0.5, 2], [2, 4, 0.7, 3], [3, 5, 2.0, 4]])
    shown = content.merge_tree(tree, np.array([0, 0, 0, 1]), np.array([9, 0, 2, 5]))
    assert [(leaf["cluster"], leaf["size"]) for leaf in shown["leaves"]] == [(1, 5), (0, 2), (0, 9)]
    assert (len(shown["brackets"]), shown["highest"], shown["empty"]) == (2, 2.0, 1)
    assert content.merge_tree(tree, np.zeros(4, dtype=int), np.array([9, 0, 0, 0])) is None


@pytest.mark.parametrize("width", [390, 1280])
def test_labels_cover_no_item_and_are_not_cut_off(browser, tmp_path, page_of_table, width):
    tab = open_page(browser, tmp_path, page_of_table[0], viewport={"width": width, "height": 800})
    assert tab.locator("#layout").input_value() == "representation"  # not the simplex
    for layout in ("representation", "simplex"):
        tab.locator("#layout").select_option(layout)
        boxes = tab.evaluate("canvas.labels")
        assert len(boxes) == 3
        points = np.array(tab.evaluate("mapped.map((_, p) => place(p))"))
        w, h = tab.evaluate("size()")
        for left, top, wide, high in boxes:
            inside = (abs(points - [left + wide / 2, top + high / 2]) < [wide / 2, high / 2]).all(axis=1)
            assert not inside.any()
            assert left >= 0 and top >= 0 and left + wide <= w and top + high <= h  # noqa: PT018
    tab.context.close()


def test_texts_are_folded_on_a_phone(browser, tmp_path, page_of_texts):
    tab = open_page(
        browser, tmp_path, page_of_texts[0], viewport={"width": 390, "height": 800}, is_mobile=True
    )
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    assert tab.evaluate("document.documentElement.scrollHeight") < 9000
    text = tab.locator("#list li").first
    folded = text.bounding_box()["height"]
    assert folded < 200
    text.locator(".more").click()
    assert text.bounding_box()["height"] > 2 * folded
    text.locator(".more").click()
    assert text.bounding_box()["height"] == folded
    tab.context.close()


def test_no_other_script_runs(browser, tmp_path, page):
    """Even what gets into the page as HTML is kept from running by the policy."""
    tab = open_page(browser, tmp_path, page)
    tab.evaluate("html => document.body.insertAdjacentHTML('beforeend', html)", HOSTILE)
    tab.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {text: 'document.title = `caught`'}))"
    )
    tab.wait_for_timeout(200)
    assert tab.title() != "caught"
    assert sum("Content Security Policy" in text for text in tab.complaints) >= 2
    tab.context.close()


@pytest.mark.filterwarnings("ignore:The clustering uses")
@pytest.mark.parametrize("kind", ["texts", "table"])
def test_hostile_content_of_every_kind_stays_text(browser, tmp_path, kind):
    n = 24
    X = [f"{HOSTILE} {'cats' if i % 2 else 'stocks'}" for i in range(n)]
    if kind == "table":
        X = pandas.DataFrame(
            np.random.default_rng(0).random((n, 2)), columns=[HOSTILE, f"</script>{HOSTILE}"]
        )
    page = report_page(
        DDC(2, n_init=1, max_iter=5, random_state=0).fit(X),
        X,
        title=HOSTILE,
        item_names=[f"{HOSTILE}{i}" for i in range(n)],
        truth=[HOSTILE if i % 2 else "</title>" for i in range(n)],
        cluster_names={0: f"</script>{HOSTILE}"},
        command=HOSTILE,
        warnings=[HOSTILE],
        skipped={HOSTILE: HOSTILE},
    )
    tab = open_page(browser, tmp_path, page)
    tab.locator("#list .item").first.click()
    tab.locator("#close-viewer").click()
    for option in tab.locator("#colour-by option").all():
        tab.locator("#colour-by").select_option(option.get_attribute("value"))
    tab.locator("input[data-cluster='1']").fill(HOSTILE)
    tab.locator("#search").fill("script")
    assert tab.locator("#found").inner_text() == f"{n} items"
    assert tab.locator("img[src=x]").count() == 0
    assert tab.title() != "caught"
    assert tab.complaints == []
    tab.context.close()
