# Every target does its own set-up in .venv. Needs: python3 (3.11 or newer), make, git, a package index.
#
#   make demo    run the example on this machine      [ARGS=...]
#   make test    run the fast tests                   [ARGS=...]
#   make test-rest  run the slow tests            [ARGS=...]
#   make planted    plant every bug, and check that tests find it  [SHARD=k/n] [ARGS=...]
#   make test-all   run all three              [ARGS=...]
#   make faults  break the real program            [ROUNDS=n] [SEED=n]
#   make conformance  interrupt every push at every await (slow)
#   make check   run everything that CI runs          [SKIP_TESTS=1]
#   make sim     run random histories             [FOR=10m]
#   make bench   measure one figure                   BENCH=name [SIZE=n]
#   make format  format the code, and fix what ruff can fix
#   make lock    regenerate the lock files            [UPGRADE=1]
#   make clean   delete all generated files

.DEFAULT_GOAL := help
.SUFFIXES:
MAKEFLAGS += --no-print-directory

export VENV ?= .venv
BIN := $(VENV)/bin
LOCK := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-annotate --no-emit-index-url \
	--custom-compile-command "make lock" $(if $(UPGRADE),--upgrade) pyproject.toml

.PHONY: help
help:
	@sed -n 's/^#   //p' Makefile

.PHONY: run-environment demo-environment dev-environment
run-environment:
	@scripts/environment.sh run
demo-environment:
	@scripts/environment.sh demo
dev-environment:
	@scripts/environment.sh dev

.PHONY: demo
demo: demo-environment
	@$(BIN)/lehr demo $(ARGS)

# Each test is in one of two tiers: tests/conftest.py.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --dist worksteal

.PHONY: test
test: dev-environment
	@$(PYTEST) -m "not slow and not planted" $(ARGS)

.PHONY: test-rest
test-rest: dev-environment
	@$(PYTEST) -m slow $(ARGS)

.PHONY: planted
planted: dev-environment
	@$(PYTEST) -m planted $(if $(SHARD),--shard $(SHARD)) $(ARGS)

.PHONY: test-all
test-all: test
	@$(MAKE) test-rest
	@$(MAKE) planted

.PHONY: faults
faults: dev-environment
	@ROUNDS=$(or $(ROUNDS),10) SEED=$(SEED) $(BIN)/python -m pytest -rP tests/faults $(ARGS)

# A push that takes seconds, at each of its awaits, under each rule: six minutes instead of one.
.PHONY: conformance
conformance: dev-environment
	@EVERY_AWAIT=1 $(BIN)/python -m pytest --timeout=3600 --durations=10 -k keeps_the_contract \
		tests/integration/plugins $(ARGS)

.PHONY: check
check: dev-environment
	@scripts/check.sh $(if $(SKIP_TESTS),lint format types layers wheels,lint format types layers wheels tests)

.PHONY: check-wheels
check-wheels: dev-environment
	@$(BIN)/python scripts/check_wheels.py

.PHONY: sim
sim: run-environment
	@$(BIN)/lehr sim run --for $(or $(FOR),60s)

.PHONY: bench
bench: dev-environment
	@test -f "benchmarks/$(BENCH).py" -o -f "benchmarks/$(BENCH)/__main__.py" || { echo "make bench BENCH=name [SIZE=n], with one of these names:" \
		$(sort $(filter-out figures kubernetes manifests,$(basename $(notdir \
		$(wildcard benchmarks/*.py) $(patsubst %/__main__.py,%,$(wildcard benchmarks/*/__main__.py)))))); exit 2; }
	@$(BIN)/python -m benchmarks.$(BENCH) $(SIZE)

.PHONY: format
format: dev-environment
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

.PHONY: lock
lock: dev-environment
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==0.13.9
	@$(LOCK) --output-file requirements.lock
	@$(LOCK) --extra demo --output-file requirements-demo.lock
	@$(LOCK) --group dev --output-file requirements-dev.lock

.PHONY: clean
clean:
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
