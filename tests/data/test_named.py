"""Named data sets. What is not at hand is skipped with that reason."""

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import joblib
import numpy as np
import pytest
import scipy.sparse
from sklearn.cluster import KMeans
from sklearn.datasets import dump_svmlight_file
from sklearn.utils import Bunch

from ddclust.data import named
from ddclust.data.named import mnist, rcv1, store
from ddclust.data.named.fetch import RemoteFile
from ddclust.data.named.reuters21578 import FILE as REUTERS_21578
from ddclust.data.named.sampling import sample_of_classes
from ddclust.data.text import StemVectorizer
from ddclust.datasets import (
    NAMED,
    DataError,
    load,
    load_data,
    load_mnist,
    load_reuters,
    load_seals,
)
from ddclust.storage import user_cache


@pytest.fixture
def nothing_at_hand(monkeypatch, tmp_path):
    """An empty cache and no data folder."""
    monkeypatch.delenv("DDCLUST_DATA", raising=False)
    monkeypatch.setattr(user_cache.platformdirs, "user_cache_path", lambda name: tmp_path / "cache" / name)
    return tmp_path / "cache" / "ddclust"


def needs(name):
    if NAMED[name].at_hand() != "yes":
        pytest.skip(f"the data set {name!r} is not at hand; set DDCLUST_DATA")


def test_every_declared_set_has_its_own_name():
    modules = [import_module(f"ddclust.data.named.{m.name}") for m in iter_modules(named.__path__)]
    declared = [s.name for module in modules for s in getattr(module, "SETS", ())]
    assert sorted(declared) == sorted(NAMED)
    assert all(name == s.name for name, s in NAMED.items())
    assert load_data is load


@pytest.mark.parametrize("name", NAMED)
def test_each_is_as_declared(name):
    needs(name)
    bunch = load(name)
    declared = NAMED[name]
    sizes = declared.size.removesuffix(" sparse").removesuffix(" texts").replace(",", "").split(" x ")
    shape = bunch.data.shape if hasattr(bunch.data, "shape") else (len(bunch.data),)
    assert shape == tuple(map(int, sizes))
    assert scipy.sparse.issparse(bunch.data) == declared.size.endswith("sparse")
    assert len(bunch.item_names) == len(set(bunch.item_names)) == shape[0]
    if declared.classes:
        assert len(set(bunch.target.tolist())) == declared.classes
        assert len(bunch.target) == shape[0]
        assert bunch.target.max() < len(bunch.target_names)
    else:
        assert bunch.target is None
    assert bunch.name == name
    assert bunch.about.endswith(".")


def test_mnist():
    needs("mnist")
    bunch = load("mnist")
    assert bunch.target[:5].tolist() == [5, 0, 4, 1, 9]
    assert bunch.data[0].sum() == 27525  # the first training image
    three = load_mnist([3, 8])
    assert set(three.target.tolist()) == {3, 8}
    assert np.array_equal(three.data[0], bunch.data[int(three.item_names[0])])
    unequal = load("mnist-unequal")
    assert tuple(np.bincount(unequal.target)) == mnist.UNEQUAL
    assert mnist.UNEQUAL[0] == 10 * mnist.UNEQUAL[9] == 6300
    few = load_mnist([8, 3], per_class=[20, 5])
    assert (np.bincount(few.target)[[8, 3]].tolist(), few.name) == ([20, 5], "mnist-2-unequal")


def test_seals():
    needs("seals")
    needs("seals-64")
    bunch = load("seals-2")
    assert bunch.target_names == ["elephant_seal_pup", "harbor_seal"]
    assert np.bincount(bunch.target).tolist() == [1000, 1000]
    everything = load("seals")
    rows = [int(name) for name in bunch.item_names]
    assert np.array_equal(bunch.data, everything.data[rows])
    assert [everything.target_names[t] for t in everything.target[rows]] == [
        bunch.target_names[t] for t in bunch.target
    ]
    assert len(bunch.photo) == 2000
    with pytest.raises(DataError, match="no class 'walrus' among the seals of size 32"):
        load_seals(["walrus"])
    with pytest.raises(ValueError, match="size=48"):
        load_seals(size=48)


@pytest.mark.parametrize(("name", "per_class"), [("reuters21578", 350), ("rcv1-subset", 400)])
def test_balanced_choices_have_as_many_of_each_class(name, per_class):
    needs(name)
    whole, balanced = load(name), load(f"{name}-balanced")
    assert np.bincount(balanced.target).tolist() == [per_class] * 4
    classes = dict(zip(whole.item_names, whole.target.tolist(), strict=True))
    assert [classes[item] for item in balanced.item_names] == balanced.target.tolist()
    assert balanced.name == f"{name}-balanced"


@pytest.mark.parametrize("name", ["agnews", "rcv1-subset"])
def test_scikit_learn_takes_sparse_sets(name):
    needs(name)
    bunch = load(name)
    KMeans(4, n_init=1, max_iter=1, random_state=0).fit(bunch.data)  # refuses indices of 64 bits


@pytest.mark.slow
def test_reuters21578_agrees_with_the_counts_made_elsewhere():
    needs("reuters21578")
    other = store.find("reuters21578_4c_counts2000.npz")
    if other is None:
        pytest.skip("the counts are not at hand")
    bunch = load("reuters21578")
    vectorizer = StemVectorizer("porter")
    vectors = vectorizer.fit_transform(bunch.data)
    counts = np.load(other)
    common = set(vectorizer.vocabulary_) & set(counts["vocabulary"].tolist())
    assert len(common) > 1900
    kept = np.diff(vectors.indptr) > 0
    assert np.array(bunch.item_names)[kept].tolist() == counts["doc_id"].astype(str).tolist()
    np.testing.assert_allclose(np.sqrt(vectors.multiply(vectors).sum(axis=1))[kept], 1, rtol=1e-5)


def test_agnews_is_the_same_as_counts_and_as_texts():
    needs("agnews")
    needs("agnews-texts")
    counts, texts = load("agnews"), load("agnews-texts")
    classes = [[bunch.target_names[code] for code in bunch.target] for bunch in (counts, texts)]
    assert classes[0] == classes[1]
    assert texts.data[0].startswith("Fears for T N pension after talks\nUnions representing workers")


@pytest.mark.parametrize(
    "name", ["seals", "seals-64", "cifar10-batch1", "reuters21578", "agnews", "agnews-texts", "rcv1-subset"]
)
def test_missing_file_is_named_with_its_place(name, nothing_at_hand):
    assert NAMED[name].at_hand() == "no"
    with pytest.raises(DataError, match=f"put the file '{NAMED[name].files[0]}' into '{nothing_at_hand}'"):
        load(name)


def test_missing_data_folder_is_mentioned(nothing_at_hand, monkeypatch):
    monkeypatch.setenv("DDCLUST_DATA", "/nowhere")
    with pytest.raises(DataError, match=r"'/nowhere', which does not exist \(DDCLUST_DATA\)"):
        load("agnews")


@pytest.mark.parametrize(("name", "file"), [("mnist", "mnist-openml.npz"), ("reuters", "reuters-rcv1.npz")])
def test_damaged_cache(name, file, nothing_at_hand):
    nothing_at_hand.mkdir(parents=True)
    np.savez(nothing_at_hand / file, other=np.zeros(3))
    with pytest.raises(DataError, match=f"{file}' is damaged"):
        load(name)


def test_unwritable_cache_keeps_what_was_fetched(archives, nothing_at_hand, monkeypatch):
    def full(*args):
        raise OSError("No space left on device")

    monkeypatch.setattr("ddclust.data.named.fetch.write_file", full)
    with pytest.warns(UserWarning, match="could not be kept"):
        assert len(load_reuters(per_class=5).target) == 20


def test_options_do_not_apply_to_named_sets():
    with pytest.raises(DataError, match="truth_column='x' does not apply to the named data set 'digits'"):
        load("digits", truth_column="x")


def test_cache_is_the_second_place(nothing_at_hand, monkeypatch):
    needs_path = Path(__file__)  # any file
    nothing_at_hand.mkdir(parents=True)
    shutil.copy(needs_path, nothing_at_hand / REUTERS_21578.path)
    assert store.find(REUTERS_21578.path) == nothing_at_hand / REUTERS_21578.path
    given = nothing_at_hand.parent / "given"
    given.mkdir()
    monkeypatch.setenv("DDCLUST_DATA", str(given))
    assert store.find(REUTERS_21578.path) == nothing_at_hand / REUTERS_21578.path
    shutil.copy(needs_path, given / REUTERS_21578.path)
    assert store.find(REUTERS_21578.path) == given / REUTERS_21578.path
    with pytest.raises(
        DataError, match=r"is not the file that the data set 'reuters21578' needs, or is damaged"
    ):
        load("reuters21578")


@pytest.mark.parametrize(
    ("name", "fetcher"), [("mnist", "sklearn.datasets.fetch_openml"), ("reuters", "urllib.request.urlopen")]
)
def test_failed_fetch_says_what_to_put_where(name, fetcher, nothing_at_hand, monkeypatch):
    def offline(*args, **kwargs):
        raise OSError("Name or service not known")

    monkeypatch.setattr(fetcher, offline)
    assert NAMED[name].at_hand() == "can be fetched"
    with pytest.raises(DataError, match=r"could not be fetched \(Name or service not known\)\. Put .* into"):
        load(name)


def test_mnist_as_openml_gives_it(nothing_at_hand, monkeypatch, rng):
    """The form of OpenML's answer, with other images: the content is checked, then refused."""
    answer = Bunch(
        data=rng.integers(0, 256, (50, 784)), target=rng.integers(0, 10, 50).astype(str).astype(object)
    )
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda *a, **k: answer)
    with pytest.raises(DataError, match="not those of MNIST"):
        load("mnist")


@pytest.mark.slow
def test_mnist_from_the_cache_equals_the_files(monkeypatch, tmp_path):
    needs("mnist")
    bunch = load("mnist")
    answer = Bunch(
        data=bunch.data.reshape(-1, 784).astype(np.int64), target=bunch.target.astype(str).astype(object)
    )
    monkeypatch.delenv("DDCLUST_DATA", raising=False)
    monkeypatch.setattr(user_cache.platformdirs, "user_cache_path", lambda name: tmp_path)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda *a, **k: answer)
    for _ in range(2):  # fetched, then from the cache
        assert np.array_equal(load("mnist").data, bunch.data)
        monkeypatch.setattr("sklearn.datasets.fetch_openml", None)
    assert (tmp_path / mnist.FETCHED_FILE).exists()
    assert NAMED["mnist"].at_hand() == "yes"


@pytest.fixture
def archives(rng, tmp_path, monkeypatch, n=400, d=30):
    """A small collection in the form of the archives of RCV1-v2, on a web of its own."""
    roots = rng.uniform(size=(n, 4)) < 0.3
    vectors = scipy.sparse.random_array((n, d), density=0.3, rng=rng, format="csr")
    ids = rng.permutation(np.arange(2286, 2286 + n))
    web = tmp_path / "web"
    web.mkdir()

    def remote(original, content):
        file = web / Path(original.path).name
        file.write_bytes(gzip.compress(content))
        return RemoteFile(original.path, hashlib.sha256(file.read_bytes()).hexdigest(), file.as_uri())

    parts = []
    for original, rows in zip(rcv1.VECTORS, np.array_split(np.arange(n), len(rcv1.VECTORS)), strict=True):
        content = io.BytesIO()
        dump_svmlight_file(vectors[rows], ids[rows], content, zero_based=False)
        parts.append(remote(original, content.getvalue()))
    lines = [
        f"{topic} {ids[row]} 1\n"
        for row in np.argsort(ids)
        for topic in ["C11", *np.array(rcv1.ROOTS)[roots[row]]]
    ]
    monkeypatch.setattr(rcv1, "VECTORS", tuple(parts))
    monkeypatch.setattr(rcv1, "TOPICS", remote(rcv1.TOPICS, "".join(lines).encode()))
    monkeypatch.setattr(rcv1, "N_TERMS", d)
    return vectors, roots, ids


def test_single_root_stories(archives, nothing_at_hand):
    vectors, roots, ids = archives
    arrays = rcv1.single_root_stories(vectors, roots, ids, n_features=10)
    expected = np.flatnonzero(roots.sum(axis=1) == 1)
    assert arrays["id"].tolist() == ids[expected].tolist()
    assert arrays["y"].tolist() == roots[expected].argmax(axis=1).tolist()
    X = scipy.sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=arrays["shape"])
    frequency = (vectors.toarray()[expected] > 0).sum(axis=0)
    kept = np.sort(np.argsort(-frequency, kind="stable")[:10])
    dense = vectors.toarray()[expected][:, kept]
    norm = np.linalg.norm(dense, axis=1, keepdims=True)
    np.testing.assert_allclose(X.toarray(), dense / np.where(norm > 0, norm, 1), rtol=1e-5)
    found = rcv1.stories_of_archives()
    assert found["y"].tolist() == arrays["y"].tolist()
    assert found["id"].tolist() == arrays["id"].tolist()


def test_reuters_is_fetched_once_and_balanced(archives, nothing_at_hand, monkeypatch):
    first = load_reuters(per_class=20)
    for remote in (*rcv1.VECTORS, rcv1.TOPICS):
        (nothing_at_hand / remote.path).unlink()
    monkeypatch.setattr(rcv1, "VECTORS", ())
    second = load_reuters(per_class=20)
    assert np.bincount(first.target).tolist() == [20] * 4
    assert first.item_names == second.item_names
    assert (first.data != second.data).nnz == 0
    with pytest.raises(DataError, match="fewer than the 54000 asked for"):
        load("reuters")


def test_nothing_is_unpickled_for_reuters(archives, nothing_at_hand):
    """scikit-learn's cache would run what a stranger put there."""
    trap = nothing_at_hand / "RCV1"
    trap.mkdir(parents=True)
    for name in ("samples", "sample_id", "sample_topics", "topics_names"):
        joblib.dump(np.array(["trap"], dtype=object), trap / f"{name}_py3.pkl", compress=9)
    events = []
    sys.addaudithook(lambda event, _: events.append(event) if event.startswith("pickle") else None)
    assert len(load_reuters(per_class=5).target) == len(load_reuters(per_class=5).target) == 20
    assert events == []


def test_a_wrong_archive_is_not_kept(archives, nothing_at_hand, monkeypatch):
    wrong = rcv1.TOPICS._replace(sha256="0" * 64)
    monkeypatch.setattr(rcv1, "TOPICS", wrong)
    with pytest.raises(
        DataError, match=r"could not be fetched .* another SHA-256.*; the \.pkl files .* are not read"
    ):
        load("reuters")
    assert not (nothing_at_hand / wrong.path).exists()


def test_damage_to_what_was_fetched_is_noticed(archives, nothing_at_hand):
    load_reuters(per_class=5)
    file = nothing_at_hand / "reuters-rcv1.npz"
    arrays = dict(np.load(file))
    arrays["y"][0] = (arrays["y"][0] + 1) % 4
    np.savez(file, **arrays)
    with pytest.raises(DataError, match=r"reuters-rcv1.npz' is damaged.*; remove it"):
        load("reuters")


def test_items_of_classes_are_drawn_at_random():
    target = np.repeat([0, 1], [50, 10])
    chosen = sample_of_classes(target, 10, 0)
    assert np.bincount(target[chosen]).tolist() == [10, 10]
    assert (np.diff(chosen) > 0).all()
    assert not np.array_equal(chosen, sample_of_classes(target, 10, 1))
    assert chosen[:10].max() > 10
    assert np.bincount(target[sample_of_classes(target, {1: 3, 0: 7}, 0)]).tolist() == [7, 3]


@pytest.mark.slow
def test_the_manuals_are_the_same_in_every_process():
    """Some texts hold sets, which Python writes in an order that depends on the process."""
    command = "from ddclust.datasets import load; import hashlib; print(hashlib.sha256(repr(load('manuals').data).encode()).hexdigest())"
    found = {
        subprocess.run(
            [sys.executable, "-c", command],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
