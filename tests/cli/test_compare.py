"""ddclust compare; tests of the comparison itself have more."""

import pytest

from commands import run


@pytest.mark.slow
def test_a_comparison(vectors):
    folder, _, _ = vectors
    result = run(
        "compare", folder / "blobs.npz", "-k", 3, "--methods", "k-means, sec", "--runs", 1, "--choices", 1,
        "--out", folder / "comparison", "--quiet",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0].split()[0] == "method"
    assert "k-means" in lines[1]
    assert "SEC" in lines[2]
    assert lines[-1] == f"Results: {folder / 'comparison'}/"


def test_an_unknown_method_is_named(vectors):
    folder, _, _ = vectors
    result = run(
        "compare", folder / "blobs.csv", "-k", 3, "--methods", "magic", "--out", folder / "comparison"
    )
    assert result.exit_code == 2
    assert "There is no method 'magic'; choose from k-means" in result.output
    assert not (folder / "comparison").exists()
