# Every target sets itself up: the first run makes .venv and installs the pinned versions, later runs start at once.

PYTHON ?= python3
ARGS ?=
WORKERS ?= 2

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# Benchmarks for a GPU and a corpus of yours; each says how to run it.
BY_HAND := benchmarks/foreign_base.py benchmarks/foreign_text.py benchmarks/large_base.py

# Empty files that say which set-up is done; newer requirements make them stale.
REQUIREMENTS := pyproject.toml constraints.txt
READY_PYTHON := $(VENV)/.ready-python
READY_TORCH := $(VENV)/.ready-torch
READY_DEMO := $(VENV)/.ready-demo
READY_DEV := $(VENV)/.ready-dev

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow robustness check bench clean

help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  PYTHON=python3.12 chooses the interpreter; ARGS='...' is passed on by demo, test and robustness; WORKERS=8 run at a time."

setup: $(READY_DEV) ## Make .venv with everything for development

demo: $(READY_DEMO) ## Two languages added to a model that stays unchanged, in minutes
	@$(BIN)/graftmt demo $(ARGS)

test: $(READY_DEV) ## Run the tests; ARGS='-m slow' or ARGS='-k beam' choose among them
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

test-slow: $(READY_DEV) ## Run the slow tests, with a sample of the attacks; many minutes
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m slow $(ARGS)

robustness: $(READY_DEV) ## Attack everything 12,000 times (docs/reliability.md); about an hour, ARGS='--sample' for minutes
	@OMP_NUM_THREADS=1 PYTHONPATH=src:tests:benchmarks $(BIN)/python -m robustness --processes $(WORKERS) $(ARGS)

check: $(READY_DEV) ## Lint, format check and types, as pre-commit does
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY_DEV) ## Run each benchmark in benchmarks/ that needs no GPU
	@set -e; for benchmark in $(sort $(filter-out $(BY_HAND), $(wildcard benchmarks/*.py))); do \
		echo "==> $$benchmark"; $(BIN)/python $$benchmark; \
	done

clean: ## Remove caches and build output; .venv and runs stay
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .schemathesis src/*.egg-info
	find src tests benchmarks -type d -name __pycache__ -prune -exec rm -rf {} +

$(READY_PYTHON):
	@command -v $(PYTHON) >/dev/null 2>&1 || { \
		echo "graftmt needs Python 3.11 or newer, and there is no '$(PYTHON)' here." >&2; \
		echo "Install it, or name another: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "graftmt needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V 2>&1)." >&2; \
		echo "Name a newer one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
		echo "'$(PYTHON)' cannot make virtual environments: its venv module is missing." >&2; \
		echo "On Debian and Ubuntu it is the package python3-venv." >&2; exit 1; }
	@echo "==> making $(VENV) with $$($(PYTHON) -V 2>&1)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

# torch first, by itself: it is by far the largest download, and a failure later does not repeat it.
$(READY_TORCH): $(REQUIREMENTS) | $(READY_PYTHON)
	@echo "==> installing torch (once; a large download)"
	@$(PIP) torch
	@touch $@

$(READY_DEMO): $(REQUIREMENTS) | $(READY_TORCH)
	@echo "==> installing graftmt with what the demo needs"
	@$(PIP) --editable '.[demo]'
	@touch $@

# Holds all that the demo needs, so the demo is ready too.
$(READY_DEV): $(REQUIREMENTS) | $(READY_TORCH)
	@echo "==> installing graftmt with what tests and checks need"
	@$(PIP) --editable '.[demo,hf,dev]'
	@touch $(READY_DEMO) $@
