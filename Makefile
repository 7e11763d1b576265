# Each target makes the virtual environment it needs. PYTHON=python3.12 picks another interpreter.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# Two workers with one thread each: tests are many and small.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadgroup

# What the studio's page is tested with, by Debian's names.
BROWSER := chromium fonts-noto-core fonts-noto-cjk fonts-noto-color-emoji
# One minor release: a newer one may know more faults.
AXE := axe-core@4.14

.PHONY: setup check test browser page axe demo bench clean

setup: $(VENV)/.user                       ## the package and nothing else

check: $(VENV)/.test                       ## the fast suite: style, types, every test that is not slow
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PYTEST) -m "not slow"

test: $(VENV)/.test browser page axe       ## all of it
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PYTEST)

browser:                                   ## a browser for the tests of the studio, fetched where that is possible
	@found=$$REGARD_BROWSER; for name in chromium chromium-browser google-chrome; do \
		found=$${found:-$$(command -v $$name)}; done; \
	if [ -z "$$found" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "installing $(BROWSER)"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
			apt-get install -y -qq --no-install-recommends $(BROWSER) >/dev/null; \
	elif [ -z "$$found" ]; then \
		echo "no Chromium: the studio's browser tests are left out; install $(BROWSER), or set REGARD_BROWSER"; fi

page:                                      ## the types of the page's modules; wants npx, and CI insists on it
	@if command -v npx >/dev/null; then npx --yes -p typescript@5 tsc -p tests/studio; \
	elif [ -n "$$CI" ]; then echo "npx is missing: the page's types cannot be checked"; exit 1; \
	else echo "no npx: the types of the studio's page are not checked"; fi

axe: $(VENV)/.test                         ## what judges whether everyone can use the page; wants npm, and CI insists on it
	@if [ -f $(VENV)/axe/node_modules/axe-core/axe.min.js ]; then :; \
	elif npm install --silent --no-save --no-audit --no-fund --prefix $(VENV)/axe $(AXE) 2>/dev/null; then :; \
	elif [ -n "$$CI" ]; then echo "npm is missing, or reaches nothing: the page cannot be judged by axe"; exit 1; \
	else echo "axe cannot be fetched with npm: the studio's page is not judged by it"; fi

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
