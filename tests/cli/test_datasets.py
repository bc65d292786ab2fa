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
    assert lines["digits"].endswith(" yes")
    assert all(len(line) <= 80 for line in result.output.splitlines())


def test_a_data_set_is_written_as_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("datasets", "tiles", "--write", "photos")
    assert (result.exit_code, result.output) == (0, "photos: 456 images\n")
    assert len(list((tmp_path / "photos").glob("*.png"))) == 456
    assert run("datasets", "wine", "--write", "wine.csv").exit_code == 0
    assert "exists already" in run("datasets", "wine", "--write", "wine.csv").output
    assert "There is no data set 'beer'" in run("datasets", "beer").output
    assert "needs the NAME" in run("datasets", "--write", "x").output


def test_a_data_set_is_described(tmp_path, monkeypatch):
    monkeypatch.setenv("DDCLUST_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    described = run("datasets", "wine").output
    assert described.startswith("wine: 178 x 13, 3 classes\norigin:  UCI")
    assert "licence: CC BY 4.0\nat hand: yes" in described
    missing = run("datasets", "seals-2").output
    assert "at hand: no\nPut seals_aerial_32.npz into" in missing


def test_the_examples_come_with_the_installation(monkeypatch, tmp_path):
    monkeypatch.setenv("DDCLUST_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    lines = {line.split()[0]: line for line in run("datasets").output.splitlines() if line}
    for name in ("circles", "digits", "tiles", "manuals", "wine"):
        assert lines[name].endswith(" yes")
