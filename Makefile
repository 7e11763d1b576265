# Each target makes the virtual environment it needs. PYTHON=python3.12 picks another interpreter.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# Two workers with one thread each: tests are many and small.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadgroup

.PHONY: setup check test demo bench clean

setup: $(VENV)/.user                       ## the package and nothing else

check: $(VENV)/.test                       ## the fast suite: style, types, every test that is not slow
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PYTEST) -m "not slow"

test: $(VENV)/.test                        ## all of it
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PYTEST)

demo: $(VENV)/.user                        ## train, score and look into a small translator
	$(BIN)/regard demo

bench: $(VENV)/.bench                      ## speed and memory beside the peers; REGARD_DATA names the corpora
	$(BIN)/python benchmarks/all.py

# torch first and from the range that has a CPU build; the extras would otherwise choose for us.
$(VENV)/.user: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet "torch>=2.10,<2.14"
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.test: $(VENV)/.user
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	touch $@

$(VENV)/.bench: $(VENV)/.user
	$(BIN)/python -m pip install --quiet --editable ".[bench]"
	touch $@

clean:
	rm -rf $(VENV) build dist
