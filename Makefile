# Everything a newcomer needs: `make demo` and `make test`. Both set up .venv by themselves.
PYTHON ?= python3
BIN    := .venv/bin
READY  := .venv/.ready
# Label Studio, which some tests start, in an environment of its own: it is large.
STUDIO ?= $(HOME)/.cache/spinal/label-studio/bin/label-studio

.DEFAULT_GOAL := help
.PHONY: help demo test test-long test-all check format rooms docs release-check clean

help:  ## List these targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
		|| { echo "spinal needs Python 3.10 or newer; point to one with: make PYTHON=python3.11"; exit 2; }
	@$(PYTHON) -m venv .venv \
		|| { rm -rf .venv; echo "No virtual environment could be made; on Debian: apt install python3-venv"; exit 2; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(READY)  ## Compare three methods on digits (needs no download)
	$(BIN)/spinal demo

test: $(READY)  ## Run the tests, two at a time
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q -m "not slow and not long"

test-long: $(READY)  ## Run the long tests: rebuild committed reports, Ray cluster failures
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q -m long

$(STUDIO):
	$(PYTHON) -m venv $(dir $(STUDIO))..
	$(dir $(STUDIO))pip install --quiet --disable-pip-version-check label-studio==1.23.2

test-all: $(READY) $(STUDIO)  ## Run all tests: with chromium and Label Studio (installed if missing)
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null \
		|| { apt-get update -q && apt-get install -y -q chromium; } \
		|| { echo "The browser tests need chromium; on Debian, as root: apt install chromium"; exit 2; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt playwright
	OMP_NUM_THREADS=1 SPINAL_LABEL_STUDIO=$(STUDIO) $(BIN)/python -m pytest -n 2 --dist worksteal -q

check: $(READY)  ## Lint and type-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)  ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

rooms: $(READY)  ## Draw docs/rooms.svg: the packages and their imports
	$(BIN)/python docs/rooms.py

docs: $(READY)  ## Build the site into docs/_build/html; any warning is an error
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	rm -rf docs/_build docs/reference docs/results
	$(BIN)/python -m sphinx -b html -W --keep-going docs docs/_build/html
	@echo "open docs/_build/html/index.html"

release-check: $(READY)  ## Build wheel and sdist; test them in empty environments, with each extra and Python
	$(BIN)/python tools/release_check.py

clean:  ## Remove the virtual environment and caches
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache docs/_build
