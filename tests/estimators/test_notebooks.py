"""What notebooks show of a fitted model, and the notebooks of the examples."""

import base64
import io
import pickle
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import sklearn
from PIL import Image
from sklearn.datasets import make_blobs

from ddclust import DDC
from ddclust.show.report import InlineReport

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))
NASTY = "<script>alert(1)</script><img src=x onerror=alert(1)>"


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_fitted_model_shows_its_clusters():
    pandas = pytest.importorskip("pandas")
    X, _ = make_blobs(300, centers=3, n_features=2, random_state=0)
    model = DDC(3, n_init=1, max_iter=30, random_state=0)
    before = model._repr_html_()
    model.fit(pandas.DataFrame(X, columns=[NASTY, "cost"]))
    after = model._repr_html_()
    own = after[after.rindex("<div><p>3 clusters of 300 items") :]
    for size in np.bincount(model.labels_):
        assert f"<td>{size}</td>" in own
    assert "&lt;script&gt;" in own
    assert {tag for tag, _ in Tags(own).found} <= {"div", "p", "table", "thead", "tbody", "tr", "th", "td"}
    assert not any(name.startswith("on") for _, attributes in Tags(own).found for name in attributes)
    assert "clusters of" not in before
    assert model._repr_mimebundle_()["text/html"].endswith("</table></div>")
    with sklearn.config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()


def images():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 60, size=(60, 9, 8, 3), dtype=np.uint8)
    X[:30, :, :4] += 150
    return X


def test_fitted_model_of_images_shows_one_of_each_cluster():
    X = images()
    model = DDC(2, n_init=1, max_iter=20, encoder=None, random_state=0).fit(X)
    shown = [given for tag, given in Tags(model._repr_html_()).found if tag == "img"]
    clusters = np.unique(model.labels_)
    assert len(shown) == len(clusters)
    for cluster, given in zip(clusters, shown, strict=True):
        assert set(given) == {"src", "alt", "style"}
        kind, _, content = given["src"].partition(",")
        assert kind == "data:image/png;base64"
        picture = np.asarray(Image.open(io.BytesIO(base64.b64decode(content)))).astype(float)
        own = np.flatnonzero(model.labels_ == cluster)
        item = X[own[model.probabilities_[own].max(axis=1).argmax()]].astype(float)
        assert np.corrcoef(picture.ravel(), item.ravel())[0, 1] > 0.999


def test_saved_and_pickled_models_hold_no_images(tmp_path):
    model = DDC(2, n_init=1, max_iter=20, encoder=None, random_state=0).fit(images())
    assert "<img" in model._repr_html_()
    model.save(tmp_path / "model")
    for other in (DDC.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert "2 clusters of 60 items" in other._repr_html_()
        assert "<img" not in other._repr_html_()


def test_encoded_images_and_files_are_shown_as_they_are(tmp_path):
    X = images()
    for place, image in enumerate(X):
        Image.fromarray(image).save(tmp_path / f"{place:02}.png")
    model = DDC(2, n_init=1, max_iter=20, encoder=brightness, random_state=0)
    for given in (X, sorted(map(str, tmp_path.glob("*.png")))):
        kept = model.fit(given)._typical_images
        assert all(any((image == other).all() for other in X) for image in kept.values())
        assert len(kept) == len(np.unique(model.labels_))


def brightness(items):
    return np.stack([np.asarray(items).mean(axis=(1, 3))[:, i] for i in range(8)], axis=1)


def test_the_report_is_shown_in_a_frame_of_its_own():
    shown = InlineReport('<p title="it\'s">\n&amp;</p><script>1</script>', height=300)._repr_html_()
    ((tag, given),) = Tags(shown).found
    assert tag == "iframe"
    assert given["srcdoc"] == '<p title="it\'s">\n&amp;</p><script>1</script>'
    assert given["sandbox"] == "allow-scripts allow-downloads"  # nothing of the notebook's own origin


def skip_without_kernel():
    """Not by importing it: fits of a process with a kernel show their progress."""
    if find_spec("ipykernel") is None:
        pytest.skip("ipykernel is not installed")


def test_progress_bars_are_widgets():
    pytest.importorskip("ipywidgets")
    shown = outputs_of("from ddclust.progress import Bar\nfor _ in Bar(range(3), desc='fitting'): pass")
    assert any("application/vnd.jupyter.widget-view+json" in output.get("data", {}) for output in shown)
    assert not [output for output in shown if output.output_type == "stream"]


def outputs_of(code):
    """What a notebook shows of some code."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    skip_without_kernel()
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(notebook, timeout=120).execute()
    return notebook.cells[0].outputs


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path, tmp_path):
    pytest.importorskip("nbclient")
    skip_without_kernel()
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "notebooks are kept without outputs"
    nbclient.NotebookClient(notebook, timeout=250, resources={"metadata": {"path": tmp_path}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in shown)
    assert any("clusters of" in output.get("data", {}).get("text/html", "") for output in shown)
    assert any("<iframe srcdoc" in output.get("data", {}).get("text/html", "") for output in shown)


def test_there_are_three_notebooks():
    assert len(NOTEBOOKS) >= 3
