# Every target sets up what it needs: a virtual environment in .venv from nothing but python3.
PYTHON ?= python3
VENV := .venv
# Processes that run tests. They wait more than they work: more of them than cores are worth it.
JOBS ?= 3
PY := $(VENV)/bin/python
.DEFAULT_GOAL := help
.PHONY: help run test check bench chaos clean lock pictures same-python
VERSION := -c 'import sys; print(sys.version_info[:2])'

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.ready: requirements-dev.lock pyproject.toml | same-python
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Chronos needs Python 3.11 or newer: make PYTHON=python3.13 ...")'
	@echo "setting up $(VENV) (once, a minute or two)"
	@test -x $(PY) || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
	@$(PY) -m pip install -qq --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@$(PY) -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# Only where a Python was asked for: python3 may be another one in the next terminal.
same-python:
ifneq ($(origin PYTHON),file)
	@test ! -x $(PY) || test "$$($(PY) $(VERSION))" = "$$($(PYTHON) $(VERSION))" \
		|| { echo "$(VENV) is of another Python than $(PYTHON): \`make clean\` first (it keeps data)" >&2; exit 2; }
endif

run: $(VENV)/.ready ## start everything on embedded parts, and print where to click
	@$(VENV)/bin/chronos up

test: $(VENV)/.ready ## run every test on private servers (JOBS=0: in one process; ARGS=... for pytest)
	@$(PY) -m pytest -n $(JOBS) --dist loadfile $(ARGS)

check: $(VENV)/.ready ## format, lint, types, import rules, then the tests
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports
	@$(PY) -m pytest -n $(JOBS) --dist loadfile $(ARGS)

bench: $(VENV)/.ready ## measure against raw Dramatiq (ONLY=engine)
	@$(PY) -m bench $(ONLY)

chaos: $(VENV)/.ready ## kill real processes and count what was lost or doubled (ONLY=name)
	@$(PY) -m chaos $(ONLY)

pictures: $(VENV)/.ready ## draw the pictures of the documents anew (needs Debian's chromium)
	@$(PY) -m docs.pictures.make_report
	@$(PY) -m docs.pictures.make_chat

clean: ## remove what was built; data and logs of `make run` stay
	@rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

lock: $(VENV)/.ready ## write the lock files anew (needs uv)
	uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --upgrade -o requirements.lock
	uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --upgrade -o requirements-dev.lock
