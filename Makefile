# Every target sets up what it needs in .venv; nothing but python3 and make is required.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Pins every package, those of isolated build environments too.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
INSTALL := $(BIN)/pip install --quiet

.PHONY: demo test test-full lint style reproduce bench figures clean

demo: $(VENV)/.core
	rm -rf demo
	$(BIN)/ddclust fit digits -k 10 --runs 8 --eliminate --max-iter 1500 --out demo
	@echo
	$(BIN)/ddclust evaluate demo digits --kmeans

# Every feature once, within a few minutes.
test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

# Everything: kills, Dask, Ray, browsers, generated inputs.
test-full: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

style: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

reproduce: $(VENV)/.dev
	$(BIN)/python -m lab run

bench: $(VENV)/.dev
	$(BIN)/python -m lab bench

figures: $(VENV)/.dev
	$(BIN)/python examples/ring_and_disc.py docs/ring_and_disc.png

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "Installing into $(VENV), about a minute..."
	$(INSTALL) --editable .
	touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "Installing into $(VENV), about two minutes..."
	$(INSTALL) --editable ".[dev]"
	touch $@ $(VENV)/.core

clean:
	rm -rf $(VENV) demo build src/*.egg-info
