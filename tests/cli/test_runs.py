"""ddclust runs."""

from commands import run


def test_the_table_of_runs(vectors):
    folder, _, _ = vectors
    out = folder / "run"
    run(
        "fit",
        folder / "blobs.csv",
        "-k",
        3,
        "--runs",
        2,
        "--max-iter",
        20,
        "--jobs",
        1,
        "--no-report",
        "--out",
        out,
    )
    shown = run("runs", out)
    assert shown.exit_code == 0, shown.output
    title, header, *rows = shown.output.splitlines()
    assert title == "blobs: complete"
    assert header.split() == ["run", "seed", "loss", "clusters", "iterations", "ended", "seconds"]
    assert [row.split()[0] for row in rows] == ["1", "2"]
    assert sum(row.endswith("best") for row in rows) == 1


def test_a_folder_without_a_fit(tmp_path):
    result = run("runs", tmp_path)
    assert result.exit_code == 2
    assert "is not a result folder of 'ddclust fit': it has no run.json" in result.output
    (tmp_path / "run.json").write_text("{")
    assert "is damaged or truncated: it is not JSON" in run("runs", tmp_path).output
