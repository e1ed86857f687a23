# Everything a person needs: `make run` starts the embedded stack, `make test` proves it. `make help` lists the rest.
PY := .venv/bin/python
PYTEST := .venv/bin/pytest
ARGS ?=

.PHONY: help setup run page schemas test test-all soak check format bench conformance check-upstream clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

setup: ## install uv and the locked environment into the tree
	@tools/setup.sh

run: setup ## start the embedded stack on loopback (ARGS="--port 0" and so on)
	@exec .venv/bin/iii-stack up $(ARGS)

page: ## build the page of the page host from its source (needs Node)
	@npm ci --silent --no-audit --no-fund --prefix packages/console/page
	@npm run --silent build --prefix packages/console/page

schemas: setup ## write the published schemas of every function and trigger type from their declarations
	@$(PY) tools/schemas.py

test: setup ## the test suite (up to 5 minutes)
	@tools/test.sh quick $(ARGS)

test-all: setup ## the long suites, each with its budget (up to 25 minutes)
	@tools/test.sh long $(ARGS)

soak: setup ## the long suites over and over, with fresh seeds, until stopped
	@tools/test.sh soak $(ARGS)

check: setup ## lint, types, borders, sizes, requirements manifest
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/pyright
	@.venv/bin/lint-imports
	@$(PY) tools/limits.py
	@$(PY) tools/requirements.py

format: setup ## format and fix what can be fixed
	@.venv/bin/ruff check --fix-only .
	@.venv/bin/ruff format .

bench: setup ## the workload beside its floor and its peers, one table
	@$(PY) bench/run.py $(ARGS)

conformance: setup ## the engine's conformance suite, against III_URL when it is set, else against the embedded engine
	@$(PY) tools/conformance.py $(ARGS)

check-upstream: setup ## our harness schemas against published ones in DIR (make check-upstream DIR=...)
	@$(PY) tools/check_upstream.py $(DIR)

clean: ## remove the environment and the tools
	@rm -rf .venv .tools .pytest_cache .ruff_cache .hypothesis .import_linter_cache
