"""What notebooks show of a fitted model, and the notebooks of the examples."""

from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.datasets import make_blobs

from ddclust import DDC

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


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path, tmp_path):
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "notebooks are kept without outputs"
    nbclient.NotebookClient(notebook, timeout=250, resources={"metadata": {"path": tmp_path}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in shown)
    assert any("clusters of" in output.get("data", {}).get("text/html", "") for output in shown)


def test_there_are_three_notebooks():
    assert len(NOTEBOOKS) >= 3
