"""ddclust datasets."""

from commands import run


def test_datasets_are_listed(monkeypatch):
    result = run("datasets")
    assert result.exit_code == 0
    lines = {line.split()[0]: line for line in result.output.splitlines() if line}
    assert {
        "circles",
        "digits",
        "mnist",
        "seals-2",
        "reuters",
        "reuters21578",
        "agnews",
        "rcv1-subset",
    } <= set(lines)
    assert "1,797 x 8 x 8" in lines["digits"]
    assert " yes " in lines["digits"]
