"""Tables with gaps, words and dates on the command line: the guess, its correction, the report, and new tables."""

import re

import numpy as np
import pandas as pd
import pytest

from commands import QUICK, WITH_REPORT, as_predicted, run
from ddclust import DDC
from ddclust.datasets import load

N = 60


@pytest.fixture
def table(tmp_path):
    """A CSV file with two kinds of penguins."""
    rng = np.random.default_rng(0)
    kind = np.arange(N) % 2
    frame = pd.DataFrame(
        {
            "sample_id": rng.permutation(N) + 500,
            "species": np.array(["Adelie", "Gentoo"])[kind],
            "mass (g)": np.where(np.arange(N) % 10 == 0, np.nan, 3700 + 1400 * kind + rng.normal(0, 200, N)),
            "seen": (
                pd.Timestamp("2021-01-01") + pd.to_timedelta(np.arange(N) // 2 + 60 * kind, unit="D")
            ).strftime("%d.%m.%Y"),
            "zip": 8000 + rng.integers(0, 4, N),
            "land": "AQ",
        }
    )
    frame.to_csv(tmp_path / "birds.csv", index=False)
    return tmp_path / "birds.csv"


def test_the_guess_is_printed_and_the_report_uses_the_columns(table, tmp_path):
    out = tmp_path / "run"
    fitted = run("fit", table, "-k", 2, *WITH_REPORT, "--out", out)
    assert fitted.exit_code == 0, fitted.output
    assert "birds: a table of 60 rows and 6 columns" in fitted.stderr
    assert re.search(r"sample_id +left out +left out: an id, all values differ", fitted.stderr)
    assert re.search(r"species +category +2 levels: Adelie, Gentoo\n", fitted.stderr)
    assert re.search(
        r"mass \(g\) +number +standardised; gaps become .*, with a flag +6 \(10 %\)", fitted.stderr
    )
    assert re.search(r"seen +date +a number, with the cycle of weekday", fitted.stderr)
    assert re.search(r"land +left out +left out: the same everywhere", fitted.stderr)
    page = (out / "report.html").read_text()
    assert "shares here and elsewhere" in page
    assert "median" in page
    assert "2021-01-" in page
    new = pd.read_csv(table)[["zip", "seen", "mass (g)", "species"]].assign(extra=1, zip=None)
    new.loc[0, "species"] = "Emperor"
    new.to_csv(tmp_path / "new.csv", index=False)
    predicted = run("predict", out, tmp_path / "new.csv")
    assert predicted.exit_code == 0, predicted.output
    assert predicted.stdout.count("\n") == N + 1
    again = run("predict", out, table)
    assert again.stdout.endswith(as_predicted(out / "labels.csv"))
    assert run("report", out).exit_code == 0
    explained = run("explain", out, "--out", tmp_path / "why")
    assert explained.exit_code == 0, explained.output
    assert "species = " in (tmp_path / "why" / "explanation.csv").read_text()


def test_the_guess_is_corrected(table, tmp_path):
    planned = run("fit", table, "-k", 2, "--kind", "zip=category, land=id", "--dry-run")
    assert planned.exit_code == 0, planned.output
    assert re.search(r"zip +category +4 levels: ", planned.stdout)
    assert "left out: an id\n" in planned.stdout
    assert "n_clusters" in planned.stdout
    assert not (tmp_path / "birds-clusters").exists()
    for kind, sentence in {
        "zip": "Error: --kind 'zip' names no column; say COLUMN=KIND, such as zip=category.",
        "zip=colour": "Error: The column 'zip' cannot be a 'colour'; there are the kinds number, category,",
        "zap=number": "has no column 'zap'; its columns are sample_id, species",
        "species=number": "Error: The column 'species' holds no numbers; it can be a category or a text.",
    }.items():
        refused = run("fit", table, "-k", 2, *QUICK, "--kind", kind, "--out", tmp_path / "run")
        assert refused.exit_code == 2
        assert sentence in refused.stderr
        assert not (tmp_path / "run").exists()


def test_kinds_are_kept_for_new_tables(tmp_path):
    pd.DataFrame({"zip": [1, 2, 3, 4] * 8, "x": np.arange(32) % 7}).to_csv(tmp_path / "a.csv", index=False)
    out = tmp_path / "run"
    fitted = run("fit", tmp_path / "a.csv", "-k", 2, *QUICK, "--kind", "zip=category", "--out", out)
    assert fitted.exit_code == 0, fitted.output
    assert DDC.load(out).columns_.kinds == {"zip": "category", "x": "number"}
    assert run("predict", out, tmp_path / "a.csv").stdout.endswith(as_predicted(out / "labels.csv"))


def test_resume_takes_the_kinds(tmp_path):
    pd.DataFrame({"zip": [1, 2, 3, 4] * 8, "x": np.arange(32) % 7}).to_csv(tmp_path / "a.csv", index=False)
    planned = run("scan", tmp_path / "a.csv", "--to", 2, "--runs", 2, "--max-iter", 5, "--jobs", 1, "--kind", "zip=category",
                  "--out", tmp_path / "scan")  # fmt: skip
    assert planned.exit_code == 0, planned.output


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_spreadsheets_of_other_countries(tmp_path, encoding):
    rows = ["Größe;Maß;Tag", "klein;1.234,5;31.12.2020", "groß;-7,25;01.02.2021", "groß;;03.04.2021"]
    (tmp_path / "a.csv").write_text("\n".join(rows), encoding=encoding)
    bunch = load(tmp_path / "a.csv")
    assert bunch.data.columns["Maß"][:2].tolist() == [1234.5, -7.25]
    assert bunch.data.columns["Größe"].tolist() == ["klein", "groß", "groß"]
    said = {"utf-16": "the encoding UTF-16, ", "cp1252": "the encoding Windows-1252, "}.get(encoding, "")
    assert bunch.notes == [f"The table is read with {said}semicolons between the cells, decimal commas."]


def test_decimal_commas_alone_are_plain_numbers(tmp_path):
    (tmp_path / "a.csv").write_text("a;b\n1,5;2\n2,5;3\n")
    assert load(tmp_path / "a.csv").data.tolist() == [[1.5, 2], [2.5, 3]]


def test_ids_in_plain_tables_are_mentioned(tmp_path):
    (tmp_path / "a.csv").write_text("user_id,x\n17,1\n4,5\n9,2\n")
    bunch = load(tmp_path / "a.csv")
    assert bunch.data.shape == (3, 2)
    assert bunch.notes == ["user_id may only count the rows, but is clustered; drop_columns leaves it out."]


def test_a_table_of_texts_is_better_given_as_texts(tmp_path):
    texts = ["the ship sails over the wide sea", "fresh bread is baked in an oven"]
    pd.DataFrame({"body": [f"{texts[i % 2]} number {'abcdefgh'[i % 8]}{i}" for i in range(30)]}).to_csv(
        tmp_path / "a.csv", index=False
    )
    planned = run("fit", tmp_path / "a.csv", "-k", 2, "--dry-run")
    assert "--text body clusters them by all their words" in planned.output


def test_names_that_would_do_harm(tmp_path):
    evil = "=cmd|'/C calc'!A0"
    frame = pd.DataFrame({evil: ["\x1b[31m<script>x</script>", "=1+1"] * 15, "v": [1.0, None, 3.0] * 10})
    frame.to_csv(tmp_path / "a.csv", index=False)
    out = tmp_path / "run"
    fitted = run("fit", tmp_path / "a.csv", "-k", 2, *WITH_REPORT, "--out", out)
    assert fitted.exit_code == 0, fitted.output
    assert "\x1b" not in fitted.output
    assert "<script>x" not in (out / "report.html").read_text()
    labels = (out / "labels.csv").read_text()
    assert not re.search(r"(^|,)=", labels, re.MULTILINE)
