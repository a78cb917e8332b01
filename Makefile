# `make` alone, or `make help`, lists what there is to make. Nothing has to be installed first but
# Python 3.11 or later: each target sets up what it needs, once, in .venv.

PORT    ?= 6006
LOGDIR  ?= sample_logs
# Reads as: the first Python on the path that is recent enough. `make PYTHON=…` picks another.
PYTHON  ?= $(shell for python in python3.13 python3.12 python3.11 python3.14 python3 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)

VENV    := .venv
BIN     := $(VENV)/bin
# One empty file for each finished piece of setting up.
MADE    := $(VENV)/.made
PIP     := $(BIN)/python -m pip --disable-pip-version-check
PYTEST  := $(BIN)/python -m pytest
NPM_RUN := $(BIN)/python hatch_build.py
PACKAGE := pyproject.toml hatch_build.py plugin/stepscope/_version.py plugin/stepscope/ingest/_scanner.pyx plugin/stepscope/replay/_scheduler.pyx
PAGE    := plugin/stepscope/static/build.json
PAGE_SOURCES := $(shell find frontend/src frontend/public -type f ! -name '*.test.*' 2>/dev/null) \
	$(wildcard frontend/*.json frontend/*.ts frontend/*.html)

OLD_PANDAS := 2.2.3
OLD_PANDAS_FOLDER := $(VENV)/pandas-$(OLD_PANDAS)
# HTA with what it imports (it asks for JupyterLab too, which nothing here runs), and young advisers.
PEERS := HolisticTraceAnalysis==0.5.0 narwhals orjson plotly psutil pydot \
	gpu-idle==0.1.0 fournex==0.3.1 pytscope==0.2.1
PARALLEL := -n auto --dist loadfile
# Bytecode is kept, whatever the shell says: two processes, twice, would compile every test anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(MADE)/run $(PAGE) ## open the tab on sample_logs/ (PORT=6006, LOGDIR=sample_logs)
	@exec $(BIN)/python scripts/demo.py --port $(PORT) $(LOGDIR)

WORKERS ?= 2

.PHONY: dask
dask: $(MADE)/dask ## start a Dask scheduler and workers on this machine, for --scheduler (WORKERS=2)
	@exec $(BIN)/python scripts/dask_cluster.py --workers $(WORKERS)

.PHONY: test
test: $(MADE)/dev $(PAGE) chromium ## run the tests of the page and the package (some minutes)
	$(NPM_RUN) test
	STEPSCOPE_HYPOTHESIS=brief $(PYTEST) $(PARALLEL) -m "not (slow or peer or every)"

.PHONY: test-all
test-all: $(MADE)/dev $(PAGE) $(MADE)/pandas-$(OLD_PANDAS) $(MADE)/peers chromium ## run the slow tests: peers, real traces, kills, pandas 2.2
	PYTHONPATH=$(OLD_PANDAS_FOLDER) STEPSCOPE_HYPOTHESIS=brief $(PYTEST) $(PARALLEL) -m "frames and not (slow or every or browser)"
	STEPSCOPE_HYPOTHESIS=brief $(PYTEST) $(PARALLEL) -m "(slow or peer) and not every"

.PHONY: test-every
test-every: $(MADE)/dev $(PAGE) $(MADE)/peers chromium ## run what is left: laws of every sample and trace, more generated examples
	STEPSCOPE_EVERY_SAMPLE=1 $(PYTEST) $(PARALLEL) -m "every or hypothesis"

.PHONY: check
check: $(MADE)/dev $(PAGE) ## check format, lint, types, layers, words, spelling, dependencies and the page's size
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m ruff check .
	$(BIN)/python -m mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python scripts/check_words.py
	$(BIN)/codespell
	$(BIN)/deptry plugin
	$(NPM_RUN) check
	$(NPM_RUN) types --check
	$(NPM_RUN) size

.PHONY: format
format: $(MADE)/dev ## format the Python sources, and apply automatic fixes
	$(BIN)/python -m ruff check --fix-only .
	$(BIN)/python -m ruff format .

.PHONY: bench
bench: $(MADE)/dev $(MADE)/peers $(MADE)/pandas-$(OLD_PANDAS) ## measure reading time against other tools, replay times, and the cost of recording (FULL=1: up to 10 M events, TRACE=a trace to repeat)
	PYTHONPATH=tests:sample_logs/record $(BIN)/python -m benchmarks $(if $(FULL),--full) $(if $(TRACE),--seed $(TRACE))
	PYTHONPATH=tests:sample_logs/record $(BIN)/python -m benchmarks.replay_times
	PYTHONPATH=tests:sample_logs/record $(BIN)/python -m benchmarks.stored_ranks
	$(if $(FULL),STEPSCOPE_LARGE=1 $(PYTEST) -n 0 tests/benchmarks)
	$(MAKE) overhead

.PHONY: overhead
overhead: $(MADE)/dev ## measure the recorder's cost in unrecorded steps, which fails above 1 % of 10 ms, and the cost of each recorded event
	PYTHONPATH=tests $(BIN)/python -m benchmarks.recorder_overhead
	PYTHONPATH=tests $(BIN)/python -m benchmarks.record_overhead
	PYTHONPATH=tests $(BIN)/python -m benchmarks.event_costs

.PHONY: scale
scale: $(MADE)/dev ## measure jobs of up to 1,024 ranks, and rewrite docs/scaling.md (SCALE="--only look dask")
	PYTHONPATH=tests:sample_logs/record $(BIN)/python -m benchmarks.scale $(SCALE)

.PHONY: versions
versions: $(PAGE) $(MADE)/uv ## run core tests with each installed Python, lowest and newest dependencies (VERSIONS="--python PATH")
	$(BIN)/python scripts/versions.py $(VERSIONS)

FUZZ    ?= 2000000
FUZZED_TRACES ?= 1000
FUZZ_SEED ?= 1

.PHONY: fuzz
fuzz: $(MADE)/dev ## feed mutated traces to the scanner under sanitizers (FUZZ=inputs, INPUT=a file that failed) and to the whole product (FUZZED_TRACES, FUZZ_SEED)
	PYTHONPATH=tests $(BIN)/python -m fuzz --count $(FUZZ) $(if $(INPUT),--input $(INPUT))
	$(if $(INPUT),,PYTHONPATH=tests OPENBLAS_NUM_THREADS=1 $(BIN)/python -m fuzz.product --count $(FUZZED_TRACES) --seed $(FUZZ_SEED))
	$(if $(INPUT),,PYTHONPATH=tests OPENBLAS_NUM_THREADS=1 $(BIN)/python -m fuzz.product --worst --whole)

.PHONY: score
score: $(MADE)/dev $(MADE)/peers ## compare the advice, and that of other programs, with the known causes: docs/accuracy.md
	PYTHONPATH=tests:sample_logs/record $(BIN)/python -m score
	$(BIN)/python scripts/rule_pages.py

.PHONY: pairs
pairs: $(MADE)/dev ## run jobs with and without faults in turns, and store what they show (PAIRS="tabular:no_workers", about 20 s each)
	-PYTHONPATH=sample_logs/record $(BIN)/python -m pairs $(PAIRS)
	PYTHONPATH=tests:sample_logs/record $(BIN)/python -m score.pairs

.PHONY: zoo
zoo: $(MADE)/dev ## time and record scripts as people write them, and store what the advice says (ZOO="char_rnn", about 80 s each on a quiet machine)
	-PYTHONPATH=sample_logs/record $(BIN)/python -m zoo_runs $(ZOO)
	PYTHONPATH=tests:sample_logs/record $(BIN)/python -m score.zoo

.PHONY: sample-outcomes
sample-outcomes: $(MADE)/dev ## write the outcomes of the rules on sample_logs/ into tests/rules/*.yml
	$(BIN)/python scripts/sample_outcomes.py

.PHONY: new-rule
new-rule: $(MADE)/run ## write the skeleton of a rule and its cases (NAME=pinned-memory-off)
	@$(BIN)/python scripts/new_rule.py $(NAME)

.PHONY: rule
rule: $(MADE)/dev ## write a rule's generated files, and run its cases and mutants (RULE=item-sync)
	$(BIN)/python scripts/rule_pages.py $(RULE)
	$(BIN)/python scripts/sample_outcomes.py $(RULE) 2>/dev/null
	$(PYTEST) -n 0 -q tests/rules/test_rules.py tests/test_docs.py -k "$(subst -,_,$(RULE)) or $(RULE)"
	PYTHONPATH=tests:sample_logs/record $(BIN)/python -m rules.mutants $(subst -,_,$(RULE))

.PHONY: mutants
mutants: $(MADE)/dev ## break each rule, and print the mutants that its cases do not detect (RULE=name)
	PYTHONPATH=tests:sample_logs/record $(BIN)/python -m rules.mutants $(RULE)

.PHONY: docs
docs: $(MADE)/docs ## build the documentation site, with pages generated from the code, into build/docs
	$(BIN)/python scripts/rule_pages.py
	$(BIN)/python -m mkdocs build --strict --quiet
	@echo "Open build/docs/index.html"

.PHONY: man
man: $(MADE)/run ## write the man pages into build/man/man1
	$(BIN)/python scripts/man_pages.py build/man/man1
	@echo "Read one: man build/man/man1/stepscope.1"

.PHONY: tutorial
tutorial: $(MADE)/dev ## run the commands of docs/tutorial.md, and write their output there
	PYTHONPATH=tests $(BIN)/python -m tutorial

.PHONY: record
record: $(MADE)/dev ## record the CPU samples in sample_logs/ again
	$(BIN)/python sample_logs/record/all.py

.PHONY: types
types: $(MADE)/dev ## write the page's types from the API's types in Python
	$(NPM_RUN) types

.PHONY: hooks
hooks: $(MADE)/dev ## install git hooks that check each commit (prek)
	$(BIN)/prek install

.PHONY: clean
clean: ## remove everything that make created, including .venv
	rm -rf $(VENV) .cache .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	rm -rf build dist plugin/stepscope/static frontend/node_modules

$(MADE)/venv:
	@test -n "$(PYTHON)" || { echo "stepscope needs Python 3.11 or later, and none was found. \
	Install one, or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "$(PYTHON) cannot make a virtual environment. \
	On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	@mkdir -p $(MADE) && touch $@

# An editable install: changes to the Python sources need none of this again.
$(MADE)/run: $(PACKAGE) | $(MADE)/venv
	@echo "Installing stepscope and building its page (a minute or two the first time) ..."
	@$(PIP) install --quiet --editable '.[tensorboard]'
	@if test -f $(PAGE); then touch $(PAGE); fi
	@touch $@

$(PAGE): $(PAGE_SOURCES) | $(MADE)/run
	@echo "Building the page ..."
	@$(PIP) install --quiet --no-deps --editable .
	@if test -f $@; then touch $@; fi

$(MADE)/docs: $(PACKAGE) | $(MADE)/run
	@echo "Installing what builds the site ..."
	@$(PIP) install --quiet --editable '.[docs]'
	@touch $@

$(MADE)/dask: $(PACKAGE) | $(MADE)/run
	@echo "Installing Dask ..."
	@$(PIP) install --quiet --editable '.[dask]'
	@touch $@

$(MADE)/dev: $(PACKAGE) | $(MADE)/run
	@echo "Installing what the tests and checks need, PyTorch with it (some minutes the first time) ..."
	@$(PIP) install --quiet --editable '.[dev]'
	@touch $@

# pandas 2.2 lies over the environment's own by PYTHONPATH: no second environment with its own torch.
$(MADE)/pandas-$(OLD_PANDAS): | $(MADE)/venv
	@echo "Installing pandas $(OLD_PANDAS) beside the newest ..."
	@$(PIP) install --quiet --no-deps --target $(OLD_PANDAS_FOLDER) pandas==$(OLD_PANDAS) pytz
	@touch $@

$(MADE)/uv: | $(MADE)/venv
	@$(PIP) install --quiet uv
	@touch $@

$(MADE)/peers: | $(MADE)/venv
	@echo "Installing what stepscope is measured beside ..."
	@$(PIP) install --quiet --no-deps --upgrade --target $(VENV)/peers $(PEERS)
	@touch $@

.PHONY: chromium
chromium:
	@test -x "$$STEPSCOPE_CHROMIUM" || command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	command -v google-chrome >/dev/null || { \
	  sudo=; test "$$(id -u)" = 0 || sudo="sudo -n"; \
	  echo "Installing Chromium for the browser tests ..."; \
	  $$sudo apt-get update -qq && $$sudo apt-get install -y -qq --no-install-recommends chromium; \
	} >&2 || { echo "The browser tests need Chromium, which could not be installed from here. Install it \
	(Debian, Ubuntu: sudo apt-get install chromium), or name one: STEPSCOPE_CHROMIUM=/path make test" >&2; exit 1; }
