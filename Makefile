# Every target sets up what it needs in .venv; nothing but python3 and make is required.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Pins every package, those of isolated build environments too.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
INSTALL := $(BIN)/pip install --quiet

.PHONY: demo test test-slow test-full test-docs docs man release torture lint style lock reproduce bench figures clean

demo: $(VENV)/.core
	rm -rf demo
	$(BIN)/ddclust fit digits -k 10 --runs 8 --eliminate --max-iter 1500 --out demo
	@echo
	$(BIN)/ddclust evaluate demo digits --kmeans

# Every feature once, within a few minutes.
test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

# The rest: kills, Dask, Ray, browsers, generated inputs.
test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "slow and not long"

test-full: test test-slow

# The commands of every page of the documentation, which takes half an hour.
test-docs: $(VENV)/.dev
	$(BIN)/python -m pytest -m long

# Crashes, kills, faults, fuzzing and sharing at length, with a table of counts: make torture PARTS=crash,kill SCALE=0.1
PARTS ?= crash,kill,fault,fuzz,share
SCALE ?= 1
torture: $(VENV)/.dev
	cd tests && OMP_NUM_THREADS=1 ../$(BIN)/python -m torture --parts $(PARTS) --scale $(SCALE)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

style: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The core installation with the digest of every file, for pip install --require-hashes.
lock:
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/pip install --quiet uv==0.13.8
	.venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--custom-compile-command "make lock" --constraint constraints.txt pyproject.toml \
		--output-file requirements-hashed.txt
	rm -rf .venv-lock

reproduce: $(VENV)/.dev
	$(BIN)/python -m lab run

bench: $(VENV)/.dev
	$(BIN)/python -m lab bench

figures: $(VENV)/.dev
	$(BIN)/python examples/ring_and_disc.py docs/ring_and_disc.png
	MPLBACKEND=Agg $(BIN)/python examples/gallery/plot_loss.py docs/loss_terms.png

# The man pages in docs/man, which an installation puts where man finds them, from the commands that --help describes.
man: $(VENV)/.dev
	$(BIN)/python docs/man/write.py docs/man

# The site, in build/site. Examples run and draw their pictures; warnings and broken links between pages are errors.
docs: $(VENV)/.docs
	$(BIN)/python docs/site/stage.py build/site-source
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -b html build/site-source build/site
	$(BIN)/python docs/site/links.py build/site

# Wheel and source archive in dist/, checked, installed into an empty environment and tried. Only the upload is left.
# The date of the last commit stands for that of the build, so that the same commit gives the same files.
release: $(VENV)/.release
	rm -rf dist build/lib build/bdist.* build/empty
	export SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) && $(BIN)/python -m build --quiet --outdir dist . && \
		$(BIN)/python .ci/repack.py dist/*
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	$(PYTHON) -m venv build/empty
	build/empty/bin/pip install --quiet dist/*.whl
	cd build/empty && bin/ddclust --version && bin/ddclust fit digits -k 10 --runs 1 --max-iter 100 --out first --quiet --force
	sha256sum dist/*

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

$(VENV)/.docs: $(VENV)/bin/python pyproject.toml constraints.txt
	$(INSTALL) --editable ".[docs]"
	touch $@

$(VENV)/.release: $(VENV)/bin/python pyproject.toml constraints.txt
	$(INSTALL) --editable ".[release]"
	touch $@

clean:
	rm -rf $(VENV) .venv-lock demo build dist src/*.egg-info
