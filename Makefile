# Each target makes the virtual environment it needs. PYTHON=python3.12 picks another interpreter.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# The package index that torch alone is installed from, such as https://download.pytorch.org/whl/cpu for the CPU build.
# Empty: as pip is set up on this machine.
TORCH_INDEX ?=
# SYSTEM=0: install nothing outside of $(VENV), neither Debian packages nor npm's; tests that need them are left out.
SYSTEM ?= 1
# Two workers with one thread each: tests are many and small. Each starts with one half of them, in the order of
# tests/conftest.py, so that a fixture is seldom made by both.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal

# What the studio's page is tested with, by Debian's names. The headless shell opens a page with a third of the CPU time
# of the whole browser, which is taken where the shell is not packaged.
BROWSER := chromium-headless-shell
FONTS := fonts-noto-core fonts-noto-cjk fonts-noto-color-emoji
# One minor release: a newer one may know more faults.
AXE := axe-core@4.14
# Files that prettier formats, by .prettierrc.json.
PAGE := "src/regard/look/page/**/*.{js,css}"

.DEFAULT_GOAL := help
.PHONY: help setup check test announce browser page axe fix coverage docs demo bench build release clean

help:                                      ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.user                       ## the package and nothing else

check: $(VENV)/.test page                  ## the fast suite: style, types, every test that is not slow
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PYTEST) -m "not slow"

test: announce $(VENV)/.test browser page axe  ## all of it; SYSTEM=0 installs nothing on the system and tests less
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PYTEST)

announce:
ifeq ($(SYSTEM),0)
	@echo "SYSTEM=0: nothing is installed on this system outside of $(VENV). What is missing here is not tested:"
	@echo "  without Chromium or fonts: the studio's page in a browser, and pictures as PNG (tests/studio)"
	@echo "  without axe-core in $(VENV)/axe: the accessibility of the page (tests/studio/test_studio_axe.py)"
	@echo "  types and format of the page's modules (tsc and prettier, by npx)"
	@if [ -n "$$CI" ]; then echo "CI is set, and CI leaves nothing out: use SYSTEM=1"; exit 1; fi
else
	@echo "make test installs, as far as it is missing (SYSTEM=0: only the first):"
	@echo "  into $(VENV), by pip: torch, regard and what its extra 'test' lists in pyproject.toml"
	@echo "  on the system, by apt-get, only for root on Debian or Ubuntu: $(BROWSER) (or chromium) $(FONTS)"
	@echo "  into $(VENV)/axe, by npm: $(AXE); into npm's cache, by npx: typescript@5 and prettier@3"
endif

browser:                                   ## installs a browser for the studio's tests where that is possible
	@found=$$REGARD_BROWSER; for name in $(BROWSER) chromium chromium-browser google-chrome; do \
		found=$${found:-$$(command -v $$name)}; done; \
	if [ -z "$$found" ] && [ "$(SYSTEM)" = 0 ]; then \
		echo "no Chromium: the studio's browser tests are left out"; \
	elif [ -z "$$found" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq; \
		name=$$(apt-cache show $(BROWSER) >/dev/null 2>&1 && echo $(BROWSER) || echo chromium); \
		echo "installing $$name $(FONTS)"; \
		DEBIAN_FRONTEND=noninteractive \
			apt-get install -y -qq --no-install-recommends $$name $(FONTS) >/dev/null; \
	elif [ -z "$$found" ]; then \
		echo "no Chromium: the studio's browser tests are left out; install $(BROWSER) or chromium, and" \
			"$(FONTS), or set REGARD_BROWSER"; fi

page:                                      ## types and format of the page's modules; needs npx, and CI requires it
	@if [ "$(SYSTEM)" = 0 ]; then echo "SYSTEM=0: the types and the format of the page are not checked"; \
	elif command -v npx >/dev/null; then npx --yes -p typescript@5 tsc -p tests/studio && \
		npx --yes prettier@3 --check --log-level warn $(PAGE); \
	elif [ -n "$$CI" ]; then echo "npx is missing: the page's types and format cannot be checked"; exit 1; \
	else echo "no npx: the types and the format of the page are not checked"; fi

axe: $(VENV)/.test                         ## axe, which checks the page for accessibility; needs npm, and CI requires it
	@if [ -f $(VENV)/axe/node_modules/axe-core/axe.min.js ]; then :; \
	elif [ "$(SYSTEM)" = 0 ]; then echo "SYSTEM=0: axe is missing, so the accessibility of the page is not checked"; \
	elif npm install --silent --no-save --no-audit --no-fund --prefix $(VENV)/axe $(AXE) 2>/dev/null; then :; \
	elif [ -n "$$CI" ]; then echo "npm is missing, or has no network: axe cannot check the page"; exit 1; \
	else echo "axe cannot be installed with npm: the accessibility of the page is not checked"; fi

fix: $(VENV)/.test                         ## repair style, format and generated files
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python docs/settings.py
	$(BIN)/python docs/tree.py
	$(BIN)/python docs/line.py
	@if [ -n '$(PAGE)' ] && command -v npx >/dev/null; then npx --yes prettier@3 --write --log-level warn $(PAGE); fi

coverage: $(VENV)/.test                    ## lines and branches that the fast suite runs; the floor is in pyproject.toml
	$(PYTEST) -m "not slow" --cov --cov-report=term --cov-report=html:build/coverage

docs: $(VENV)/.docs                        ## the documentation as a site in build/site; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir build/site

demo: $(VENV)/.user                        ## train, score and look into a small translator
	$(BIN)/regard demo

bench: $(VENV)/.bench                      ## speed and memory, compared with the peers; REGARD_DATA names the corpora
	$(BIN)/python benchmarks/all.py

build: $(VENV)/.release                    ## wheel and source archive in dist/, checked by twine
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist
	$(BIN)/twine check --strict dist/*

release: $(VENV)/.release                  ## VERSION=0.2.0: bump, tag and build; prints what publishes it (RELEASING.md)
	@[ -n "$(VERSION)" ] || { echo "usage: make release VERSION=0.2.0"; exit 2; }
	@[ -z "$$(git status --porcelain)" ] || { echo "there are uncommitted changes: commit them first"; exit 1; }
	@grep -q '^## \[$(VERSION)\]' CHANGELOG.md || \
		{ echo "CHANGELOG.md has no section [$(VERSION)]: rename [Unreleased] first"; exit 1; }
	sed -i.old 's/^__version__ = .*/__version__ = "$(VERSION)"/' src/regard/__init__.py
	rm src/regard/__init__.py.old
	git diff --quiet || git commit --all --message "Release $(VERSION)"
	git tag --annotate v$(VERSION) --message "regard $(VERSION)"
	$(MAKE) build
	@echo "nothing is published yet; to publish:"
	@echo "  git push origin HEAD v$(VERSION)"
	@echo "  $(BIN)/twine upload dist/*"

# torch first and from the range that has a CPU build; the extras would otherwise choose for us.
$(VENV)/.user: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet "torch>=2.10,<2.14" $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX))
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.test: $(VENV)/.user
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	touch $@

$(VENV)/.docs: $(VENV)/.user
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	touch $@

$(VENV)/.release: $(VENV)/.user
	$(BIN)/python -m pip install --quiet --editable ".[release]"
	touch $@

$(VENV)/.bench: $(VENV)/.user
	$(BIN)/python -m pip install --quiet --editable ".[bench]"
	touch $@

clean:
	rm -rf $(VENV) build dist
