# Everything that a user or a developer runs. `make` alone explains.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# What only the originals need, installed when they are first run.
ORIGINALS := $(VENV)/.installed-originals

.DEFAULT_GOAL := help
.PHONY: help setup compare test test-faults test-originals test-long lint bench draw names clean

help:  ## this text
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP)  ## a virtual environment in .venv with everything installed

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "rebalance-lab needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Set PYTHON=..." >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test]'
	@touch $@

$(ORIGINALS): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[originals]'
	@touch $@

compare: setup  ## run the basic scenarios under zookeeper and eager and compare them (SMOKE=1: crash and herd; ARGS=--all: everything)
	$(BIN)/rebalance-lab compare $(if $(SMOKE),--smoke) $(ARGS)

test: setup  ## the tests (about 8 minutes)
	$(BIN)/python -m pytest -m "not faults and not originals and not long" $(ARGS)

test-faults: setup  ## scenarios as failure-injection tests, where they tell most (at most 10 minutes)
	$(BIN)/python -m pytest -m "faults and not long" $(ARGS)

test-originals: $(ORIGINALS)  ## beside Kafka's own consumers and brokers (a Maven repository needed, once)
	$(BIN)/python -m pytest -m "originals and not long" $(ARGS)

test-long: $(ORIGINALS)  ## what CI has no time for: every scenario in every design, races under more seeds, options in pairs, the long soak
	$(BIN)/python -m pytest -m "long" $(ARGS)

lint: setup  ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: setup  ## the figures (SMOKE=1: small sizes)
	$(BIN)/python -m bench $(if $(SMOKE),--smoke) $(ARGS)

draw: setup  ## the diagrams in docs/, from runs made now
	$(BIN)/python -m docs.draw $(ARGS)

names: setup  ## the page that maps the tests of Kafka's coordinator to ours
	$(BIN)/python -m docs.name_tests

clean:  ## forget the virtual environment and all runs
	rm -rf $(VENV) runs build *.egg-info
