"""Folders of work that can be resumed: whose they are, and that only one process works there."""

import json
import pickle
import subprocess
import sys

import pytest

from ddclust.storage.workspace import Kind, Workspace, WorkspaceError


class BakingError(WorkspaceError):
    """A folder that cannot be used for baking."""


BAKING = Kind(
    format="ddclust-baking",
    file="cake.json",
    content="a cake",
    work="Another baker",
    differences={"flour": "the flour differs"},
    error=BakingError,
    version=3,
)
RECIPE = {"eggs": 3, "flour": "a1b2", "oven": {"heat": 180, "fan": {"Fan": {"speed": 2}}}}


@pytest.fixture
def folder(tmp_path):
    """A workspace of the recipe."""
    with Workspace(tmp_path / "cake", BAKING).claimed(RECIPE):
        return tmp_path / "cake"


def test_a_new_folder_becomes_the_work_s(tmp_path):
    workspace = Workspace(tmp_path / "deep" / "cake", BAKING)
    with workspace.claimed(RECIPE, seeds=[1, 2]) as found:
        assert found == workspace.read()
        assert found == {"format": "ddclust-baking", "format_version": 3, **RECIPE, "seeds": [1, 2]}
    with workspace.claimed(RECIPE, seeds=[7]) as found:
        assert found["seeds"] == [1, 2]  # as an earlier call left them


def test_identities_are_compared_as_json(tmp_path):
    for eggs in ((1, 2), [1, 2]):
        with Workspace(tmp_path, BAKING).claimed({"eggs": eggs}):
            pass


@pytest.mark.parametrize("name", ["thesis.tex", ".hidden", "row.json"])
def test_foreign_files_are_refused_and_stay(tmp_path, name):
    (tmp_path / name).write_text("precious")
    with pytest.raises(BakingError, match="holds other files than a cake; choose an empty or new folder"):
        Workspace(tmp_path, BAKING).claim(RECIPE)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "precious"


def test_torn_files_and_locks_are_nothing_foreign(tmp_path):
    (tmp_path / ".cake.json.ab12.partial").write_text("{")
    (tmp_path / "lock").touch()
    with Workspace(tmp_path, BAKING).claimed(RECIPE):
        assert not list(tmp_path.glob(".*.partial"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"eggs": 4}, "eggs is 3 there and 4 here"),
        ({"flour": "c3d4"}, "the flour differs"),
        ({"oven": {"heat": 200, "fan": {"Fan": {"speed": 2}}}}, "heat is 180 there and 200 here"),
        ({"oven": {"heat": 180, "fan": {"Fan": {"speed": 3}}}}, "speed is 2 there and 3 here"),
        ({"oven": {"heat": 180, "fan": None}}, "fan is {'Fan': {'speed': 2}} there and None here"),
        (
            {"oven": {"heat": 180, "fan": {"custom": "my.fan"}}},
            "fan is {'Fan': {'speed': 2}} there and {'custom': 'my.fan'} here",
        ),
        ({"sugar": 1}, "sugar is None there and 1 here"),
        ({"eggs": 4, "flour": "x"}, "eggs is 3 there and 4 here; the flour differs"),
    ],
)
def test_differences_are_named(folder, change, words):
    before = (folder / "cake.json").read_text()
    with pytest.raises(BakingError) as caught:
        Workspace(folder, BAKING).claim(RECIPE | change)
    assert f"{str(folder)!r} holds a cake of other work: {words}. Repeat the same call" in str(caught.value)
    assert (folder / "cake.json").read_text() == before
    with Workspace(folder, BAKING).claimed(RECIPE):
        pass  # the refused one has let go of the lock


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON .*; delete the folder to start anew"),
        ("[]", "does not hold what it should .*; delete the folder to start anew"),
        ('{"format": "ddclust-scan"}', "does not describe a cake of ddclust"),
        (
            '{"format": "ddclust-baking", "format_version": 2}',
            "holds a cake of format 2, this ddclust reads 3; go on with the version that wrote it, or delete the folder",
        ),
    ],
)
def test_damaged_identities_are_named(folder, content, message):
    (folder / "cake.json").write_text(content)
    with pytest.raises(BakingError, match=message):
        Workspace(folder, BAKING).claim(RECIPE)


HOLD = """
import sys
from ddclust.storage.workspace import Kind, Workspace
kind = Kind(format="ddclust-baking", file="cake.json", content="a cake", work="Another baker", differences={}, version=3)
with Workspace(sys.argv[1], kind).claimed({}):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_folder_held_by_another_process_is_refused(folder):
    command = [sys.executable, "-c", HOLD, str(folder)]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(BakingError, match="Another baker is using .*cake"):
            Workspace(folder, BAKING).claim(RECIPE)
    finally:
        other.kill()  # whoever held it need not say goodbye
        other.communicate()
    with Workspace(folder, BAKING).claimed(RECIPE):
        pass


def test_an_error_in_the_block_lets_go(folder):
    with pytest.raises(KeyboardInterrupt), Workspace(folder, BAKING).claimed(RECIPE):
        raise KeyboardInterrupt
    with Workspace(folder, BAKING).claimed(RECIPE):
        pass


def test_a_copy_in_a_worker_does_not_hold_the_folder(folder):
    workspace = Workspace(folder, BAKING)
    with workspace.claimed(RECIPE):
        copy = pickle.loads(pickle.dumps(workspace))
        copy.release()
        with pytest.raises(BakingError, match="Another baker"):
            Workspace(folder, BAKING).claim(RECIPE)


def test_an_outcome_is_found_again(folder):
    workspace = Workspace(folder, BAKING)
    with workspace.claimed(RECIPE):
        (folder / "dough").mkdir()
        (folder / "dough" / "ball").touch()
        workspace.finish(taste="good")
        workspace.discard("dough")
        workspace.discard("dough")  # nothing to do
    assert not (folder / "dough").exists()
    with Workspace(folder, BAKING).claimed(RECIPE) as found:
        assert found["taste"] == "good"
        assert found["eggs"] == 3
    assert json.loads((folder / "cake.json").read_text())["format"] == "ddclust-baking"


@pytest.mark.parametrize(("there", "here"), [({"a": 1}, {}), ({}, {"a": 1}), ({"a": 1, "b": 2}, {"a": 1})])
def test_entries_that_only_one_side_has_are_differences(tmp_path, there, here):
    with Workspace(tmp_path / "w", BAKING).claimed({"weights": there}):
        pass
    with (
        pytest.raises(WorkspaceError, match="there and"),
        Workspace(tmp_path / "w", BAKING).claimed({"weights": here}),
    ):
        pass
