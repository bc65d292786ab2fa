"""The table of options agrees with the estimator, the readers and the registries."""

import inspect

import numpy as np
import pytest

from commands import QUICK, run
from ddclust.choosing.selection import CRITERIA
from ddclust.cli import compare, options
from ddclust.cli.fit import FIT_ROWS
from ddclust.cli.main import main
from ddclust.cli.options import (
    DATA_TABLE,
    MODEL_TABLE,
    data_parameters,
    in_options,
    model_of,
    model_parameters,
)
from ddclust.compare.methods import METHODS
from ddclust.datasets import load
from ddclust.ddc import DDC
from ddclust.networks import INITS, KINDS
from ddclust.objective.augment import BUILT_IN
from ddclust.objective.precision import PRECISIONS

# The command line repeats its results unless it is told otherwise.
OTHER_DEFAULTS = {"seed": 0}


def owner_and_name(row):
    """The callable whose parameter a row sets, and the name of that parameter."""
    parameter, _, field = row.parameter.partition(".")
    return (options.parameter_classes()[parameter], field) if field else (DDC, parameter)


@pytest.mark.parametrize("row", MODEL_TABLE.values(), ids=MODEL_TABLE)
def test_parameters_and_defaults_are_those_of_the_estimator(row):
    owner, name = owner_and_name(row)
    assert name in inspect.signature(owner).parameters
    default = getattr(owner(), name)
    if row.name in OTHER_DEFAULTS:
        assert row.default == OTHER_DEFAULTS[row.name]
    elif row.default is None:
        assert row.required or default in (None, "auto", {})
    else:
        assert row.convert(row.default) == default


@pytest.mark.parametrize("row", DATA_TABLE.values(), ids=DATA_TABLE)
def test_data_options_are_parameters_of_load(row):
    assert inspect.signature(load).parameters[row.parameter].default == row.default


@pytest.mark.parametrize(
    ("name", "registry"),
    [
        ("augment", ["auto", "none", *BUILT_IN]),
        ("network", KINDS),
        ("init", INITS),
        ("precision", ["auto", *PRECISIONS]),
        ("criterion", CRITERIA),
    ],
)
def test_choices_are_those_of_the_registries(name, registry):
    assert list(MODEL_TABLE[name].type.choices) == list(registry)


def test_every_method_can_be_compared():
    assert tuple(METHODS) == compare.METHODS


def test_no_row_is_lost():
    assert (
        len(FIT_ROWS)
        == len({flag for row in FIT_ROWS.values() for flag in row.flags if flag.startswith("--")}) - 1
    )
    given = {option.name for option in main.commands["fit"].params}
    assert given == {*FIT_ROWS, "data", "out", "force", "dry_run", "quiet", "as_json"}


def test_options_that_are_not_given_leave_the_defaults():
    assert model_parameters({}) == {}
    defaults = {name: row.default for name, row in MODEL_TABLE.items()}
    parameters = model_parameters(defaults | {"clusters": 3})
    assert not {"network", "loss", "selection", "neighbors", "n_final", "learning_rate"} & parameters.keys()
    assert parameters["n_clusters"] == 3
    assert model_of(defaults | {"clusters": 3}).get_params() == DDC(3, random_state=0).get_params()


def test_options_that_share_a_parameter():
    classes = options.parameter_classes()
    given = {
        "network": "conv",
        "init": "he",
        "criterion": "pairs",
        "eliminate": True,
        "balance": 7.0,
        "sizes": "2,1",
    }
    assert model_parameters(given) == {
        "network": classes["network"](kind="conv", init="he"),
        "selection": classes["selection"](criterion="pairs", halving=True),
        "loss": classes["loss"](weights={"orthogonality": 7.0}, cluster_sizes=[2.0, 1.0]),
    }
    assert model_parameters({"augment": "none"}) == {"augment": None}


def test_data_parameters():
    given = {"text": "words", "id": None, "size": 16, "clusters": 3}
    assert data_parameters(given) == {"text_column": "words", "image_size": 16}


def test_every_criterion_works(tmp_path):
    for criterion in MODEL_TABLE["criterion"].type.choices:
        out = tmp_path / criterion
        result = run(
            "fit", "circles", "-k", 2, "--runs", 2, "--max-iter", 5, "--jobs", 1, "--no-report", "--criterion", criterion,
            "--out", out,
        )  # fmt: skip
        assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("fit", "digits", "-k", "3", "--text", "a"),
            "Error: --text 'a' does not apply to the named data set",
        ),
        (
            ("fit", "digits", "-k", "3", "--vote", "9"),
            "Error: --vote 9 should be <= --runs 4: only runs that",
        ),
        (("fit", "digits", "-k", "3", "--device", "moon"), "Error: --device 'moon' is not available here;"),
        (
            ("fit", "words.csv", "-k", "2"),
            "'a' is left out: the same everywhere; 'b' is left out: empty. If one should be, say what it is by --kind ...",
        ),
        (("fit", "lines.jsonl", "-k", "2"), "Name the fields that hold the text (--text 'title,body')."),
        (("predict", "model", "digits", "--truth", "a"), "Error: --truth 'a' does not apply to the named"),
        (
            ("evaluate", "words.csv", "digits", "--column", "a"),
            "Error: --column 'a' does not apply to the named",
        ),
    ],
)
def test_errors_name_the_options_of_the_command(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.csv").write_text("a,b\nx,\nx,\n")
    (tmp_path / "lines.jsonl").write_text('{"x": "a", "y": "b"}\n')
    DDC(2, n_init=1, max_iter=2, n_jobs=1, random_state=0).fit(load("digits").data[:50]).save("model")
    done = run(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr


def test_warnings_name_the_options_of_the_command(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((30, 2)))
    done = run("fit", tmp_path / "x.npy", "-k", "20", *QUICK, "--out", tmp_path / "out")
    assert "More runs (--runs), more iterations (--max-iter) or a smaller --clusters may help." in done.stderr


@pytest.mark.parametrize(
    "message",
    [
        "'my device=5.npy' is not a data file.",
        "The items' names are in another language; neighbors count.",
        'the "n_init" of it',
        "model.n_init is another thing",
    ],
)
def test_words_that_are_no_parameters_stay(message):
    assert in_options(message, main.commands["fit"]) == message


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("-k", "three", "'three' is not a whole number."),
        ("-k", "0", "0 is not at least 1."),
        ("--learning-rate", "fast", "'fast' is not a number."),
        ("--learning-rate", "0", "0 is not above 0."),
        ("--balance", "nan", "nan is not at least 0."),
        ("--seed", str(2**32), f"{2**32} is not at most {2**32 - 1}."),
    ],
)
def test_wrong_numbers_are_told_in_plain_words(option, value, words):
    result = run("fit", "wine", "-k", 3, option, value)
    assert result.exit_code == 2
    assert words in result.output
