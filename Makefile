# Everything runs from .venv, which holds the locked versions; each target makes it first.
# The peers that bench/ compares with are in .venv-bench, so that nothing else meets them.

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-covered test-rest test-ray test-long
.PHONY: test-without-ray test-package test-models test-tlog
.PHONY: lint format types check bench sample size torture lock dist docs clean

BIN := .venv/bin
READY := .venv/.ready
BENCH_READY := .venv-bench/.ready
UV := $(shell command -v uv)
PYTEST = $(BIN)/python -m pytest --dist loadscope --no-loadscope-reorder -m 'not long'
COVERED := $(addprefix tests/,actors deciders events histories stores)
RAY := tests/ray tests/torture
PACKAGE := $(patsubst %,tests/test_%.py,makefile wheel docs architecture modules requirements)
# Each worker that imports the vendors' packages is busy with it for seconds.
MODELS := tests/providers tests/adapters tests/test_chaos.py tests/cli/test_retirement.py
# What computes has a worker for each core; what waits, for processes or its time, has more.
WAITING := -n $(shell cores=$$(getconf _NPROCESSORS_ONLN); echo $$((cores < 4 ? 2 * cores - 1 : 8)))
# Where this `make` can, it prints the output of each target in one piece.
BESIDE = --no-print-directory $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
RULES := cueline/deciders/*

# Bytecode is compiled once, here, and not in every process of a cluster.
unexport PYTHONDONTWRITEBYTECODE

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*##/\1	/p' $(MAKEFILE_LIST)

setup: $(READY)  ## make .venv, with uv where it is installed and venv + pip where not

demo: setup  ## agents on Ray lose the process they run in, and carry on
	@$(BIN)/python examples/demo/demo.py

test: setup  ## run the tests: those that start Ray, which wait, beside all others, which compute
	@$(MAKE) $(BESIDE) --jobs 2 test-ray test-without-ray

test-without-ray: setup
	@$(MAKE) --no-print-directory test-covered
	@$(MAKE) --no-print-directory test-rest
	@$(MAKE) --no-print-directory test-models
	@$(MAKE) --no-print-directory test-package

test-covered: setup  ## the tests of the rules, which they run whole, and of the log and the actors
	$(PYTEST) -n auto --maxprocesses 4 $(COVERED) --cov
	$(BIN)/python -m coverage report --fail-under 100 --include '$(RULES)'

test-rest: setup  ## the tests of all other rooms
	$(PYTEST) $(WAITING) $(patsubst %,--ignore=%,$(COVERED) $(RAY) $(PACKAGE) $(MODELS))

test-ray: setup  ## the tests that start Ray, except for the longest
	$(PYTEST) -n 2 $(RAY)

test-long: setup  ## the longest tests, and all examples of those that draw some
	$(PYTEST) -n 2 -m long tests
	WHOLE=1 $(PYTEST) -n 2 $(shell grep -rl drawn --include='test_*.py' tests)

test-package: setup  ## the tests of the Makefile, the wheel, the pages and the shape of the code
	$(PYTEST) -n 2 $(PACKAGE)

test-models: setup  ## the tests of the providers and adapters
	$(PYTEST) -n 2 $(MODELS)

test-tlog: setup .venv-tlog/.ready  ## the proofs by aics-tlog, which needs Python 3.12
	$(PYTEST) tests/cli/test_seals.py

lint: setup  ## ruff: rules and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

format: setup  ## rewrite the files as `lint` wants them
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

types: setup  ## mypy, strict
	$(BIN)/mypy

check: lint types test  ## what a change must pass

bench: $(READY) $(BENCH_READY)  ## measure the promises of docs/performance.md
	$(BIN)/python -m bench $(NAMES)

sample: setup  ## a minute of the benches, with half of their floors
	$(BIN)/python -m bench --sample

size: setup  ## files and lines of code, by room
	@$(BIN)/python -m bench.size

torture: setup  ## kill sessions for SECONDS, drawn by SEED, and write it into docs/reliability.md
	$(BIN)/python -m tests.torture --seconds $(or $(SECONDS),600) --seed $(or $(SEED),1) \
	    --lanes $(or $(LANES),inline ray)

lock:  ## resolve again, after a dependency changed in pyproject.toml (needs uv)
	uv lock
	uv export --quiet --locked --no-emit-project --output-file requirements.lock
	uv export --quiet --locked --only-group bench --output-file requirements-bench.lock
	python3 deploy/sbom.py

dist: setup  ## build the sdist, and the wheel from it, into dist/
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/uv build --no-build-isolation --python $(BIN)/python

docs: setup  ## make a site of docs/ in site/; a broken link is an error
	$(BIN)/uv run --quiet --isolated --locked --only-group docs zensical build --clean --strict

clean:  ## remove .venv, .venv-bench, .venv-tlog, caches and builds
	rm -rf .venv .venv-bench .venv-tlog build dist site .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find cueline tests examples bench -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

.venv-tlog/.ready: $(READY)
	$(or $(TLOG_PYTHON),python3.12) -m venv --clear .venv-tlog
	.venv-tlog/bin/pip install --quiet aics-tlog==0.2.1
	touch $@

ifdef UV

# Ray has wheels for these versions only, and uv would take the newest it finds.
PYTHONS := >=3.11,<3.15
UV_SYNC = uv sync --locked --compile-bytecode --python '$(or $(PYTHON),$(PYTHONS))'

$(READY): pyproject.toml uv.lock
	$(UV_SYNC)
	@touch $@

$(BENCH_READY): $(READY)
	UV_PROJECT_ENVIRONMENT=.venv-bench $(UV_SYNC) --only-group bench
	@touch $@

else

PIP = $(BIN)/python -m pip --quiet --disable-pip-version-check --no-input
SUITABLE = import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))

$(READY): pyproject.toml requirements.lock
	@for python in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11); do \
	    "$$python" -c '$(SUITABLE)' 2>/dev/null || continue; \
	    "$$python" -c 'import ensurepip, venv' 2>/dev/null || { \
	        echo "$$python cannot make virtual environments;" \
	            "on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }; \
	    "$(BIN)/python" -c '$(SUITABLE)' 2>/dev/null || clear=--clear; \
	    echo "making .venv with $$("$$python" --version), once"; \
	    exec "$$python" -m venv $$clear .venv; \
	done; \
	echo "cueline needs Python 3.11 to 3.14; install one, or name it: make PYTHON=/path/to/python" >&2; \
	exit 1
	$(PIP) install --require-hashes --no-deps --requirement requirements.lock
	$(PIP) install --no-deps --editable .
	@touch $@

$(BENCH_READY): $(READY) requirements-bench.lock
	$(BIN)/python -m venv .venv-bench
	$(PIP:.venv/%=.venv-bench/%) install --require-hashes --no-deps --requirement requirements-bench.lock
	@touch $@

endif
