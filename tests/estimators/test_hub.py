"""Model cards, and model folders on a hub: a small server that speaks the hub's protocol takes and gives the files."""

import base64
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from ddclust import DDC
from ddclust.card import as_text

QUICK = {"n_init": 1, "max_iter": 40, "random_state": 0, "n_jobs": 1}
NASTY = "a|b\n---\n# <script>alert(1)</script> [x](javascript:y)"
SHA = "0" * 40


@pytest.fixture(scope="module")
def model():
    pandas = pytest.importorskip("pandas")
    X, _ = make_blobs(300, centers=3, n_features=2, random_state=0)
    return DDC(3, **QUICK).fit(pandas.DataFrame(X, columns=[NASTY, "cost"]))


def test_card_is_one_that_the_hub_takes(model, tmp_path):
    hub = pytest.importorskip("huggingface_hub")
    model.save(tmp_path / "model")
    card = hub.ModelCard.load(tmp_path / "model" / "README.md")
    assert card.data.to_dict() == {
        "library_name": "ddclust",
        "tags": ["ddclust", "clustering", "unsupervised"],
    }
    assert "3 clusters, fitted on 300 items" in card.text
    for cluster, size in enumerate(np.bincount(model.labels_)):
        assert f"| {cluster} | {size} | " in card.text


def test_card_shows_names_as_they_are(model, tmp_path):
    model.save(tmp_path / "model")
    text = (tmp_path / "model" / "README.md").read_text()
    assert as_text(NASTY) in text
    assert "<script" not in text
    assert "](javascript" not in text
    assert text.count("\n---\n") == 1  # the end of the metadata


def test_folders_are_taken_as_they_are(model, tmp_path):
    model.save(tmp_path / "model")
    loaded = DDC.from_pretrained(tmp_path / "model", device="cpu")
    assert np.array_equal(loaded.labels_, model.labels_)
    assert np.array_equal(DDC.from_pretrained(str(tmp_path / "model")).labels_, model.labels_)


def test_missing_client_is_named(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    for call in (lambda: model.push_to_hub("me/model"), lambda: DDC.from_pretrained("me/model")):
        with pytest.raises(ImportError, match="pip install huggingface_hub"):
            call()


class Hub(BaseHTTPRequestHandler):
    """As much of the hub as uploads and downloads of small files need."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        files, path = self.server.files, self.path.partition("?")[0]
        if path == "/api/repos/create":
            self.answer({"url": f"{self.server.address}/me/model", "id": "me/model"})
        elif path == "/api/validate-yaml":
            self.answer({"errors": [], "warnings": []})
        elif path.endswith("/preupload/main"):
            names = [file["path"] for file in json.loads(body)["files"]]
            self.answer(
                {"files": [{"path": n, "uploadMode": "regular", "shouldIgnore": False} for n in names]}
            )
        elif path.endswith("/commit/main"):
            for line in body.splitlines():
                change = json.loads(line)
                value = change["value"]
                if change["key"] == "file":
                    files[value["path"]] = base64.b64decode(value["content"])
                elif change["key"] == "deletedFile":
                    del files[value["path"]]
            self.answer(
                {
                    "success": True,
                    "commitOid": SHA,
                    "commitUrl": f"{self.server.address}/me/model/commit/{SHA}",
                }
            )
        else:
            self.send_error(404)

    def do_GET(self):
        files, path = self.server.files, self.path.partition("?")[0]
        listed = [{"rfilename": name} for name in files]
        if "/tree/" in path:
            self.answer([{"type": "file", "path": n, "size": len(c), "oid": SHA} for n, c in files.items()])
        elif "/resolve/" in path:
            self.give(files[path.rpartition("/")[2]])
        elif path.startswith("/api/models/"):
            self.answer({"id": "me/model", "sha": SHA, "siblings": listed, "tags": [], "private": False})
        else:
            self.send_error(404)

    do_HEAD = do_GET  # noqa: N815

    def answer(self, content):
        self.give(json.dumps(content).encode(), "application/json")

    def give(self, content, kind="application/octet-stream"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{hash(content)}"')
        self.send_header("X-Repo-Commit", SHA)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def hub():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.address, server.files = f"http://127.0.0.1:{server.server_port}", {}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.slow
def test_push_and_pull(model, hub, tmp_path):
    pytest.importorskip("huggingface_hub")
    model.save(tmp_path / "model")
    hub.files["tensors-of-an-older-model.safetensors"] = b"old"
    hub.files["pickled.bin"] = b"not ours"
    code = (
        "import sys; from ddclust import DDC; model = DDC.load(sys.argv[1]);"
        "print(model.push_to_hub('me/model', token='hf_x'));"
        "print(DDC.from_pretrained('me/model', token='hf_x').predict_proba(model.scaling_.shift[None] + [[0, 0], [3, 1]]))"
    )
    environment = os.environ | {
        "HF_ENDPOINT": hub.address,
        "HF_HOME": str(tmp_path / "home"),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_OFFLINE": "0",
        "NO_PROXY": "127.0.0.1",
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, tmp_path / "model"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    address, _, probabilities = done.stdout.partition("\n")
    assert address == f"{hub.address}/me/model/commit/{SHA}"
    X = model.scaling_.shift[None] + [[0, 0], [3, 1]]
    assert probabilities.strip() == str(model.predict_proba(X))
    saved = {file.name: file.read_bytes() for file in (tmp_path / "model").iterdir()}
    assert hub.files == saved | {"pickled.bin": b"not ours"}
    fetched = {file.name for file in (tmp_path / "home").rglob("snapshots/*/*")}
    assert fetched == saved.keys()
