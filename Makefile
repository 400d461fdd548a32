# Needs Python >= 3.11 and make, nothing else. Every target sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Tests of real servers mostly wait: files of them go side by side.
BESIDE := -n 3 --dist loadfile
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help setup run test check lint types imports schemas unit contract integration e2e chaos soak bench bench-chunking bench-chunk-quality bench-eventbus bench-executors bench-local bench-retrieval bench-documents check-deploy images-test lock clean

help: ## Show the targets
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 18

$(READY): requirements.lock setup.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Sluice needs Python >= 3.11: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@echo "Installing the locked packages into $(VENV) (once) ..."
	@# uv is many times faster; where it cannot reach an index that pip is configured for, pip does it.
	@$(PIP) --require-hashes -r setup.lock \
	  && $(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode --require-hashes -r requirements.lock \
	  || $(PIP) --require-hashes -r requirements.lock
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

setup: $(READY) ## Make the virtual environment with the locked packages

run: $(READY) ## Set up and start the whole product on its embedded parts
	@$(BIN)/sluice up

test: $(READY) check integration e2e ## Set up and run every check and test

check: lint types imports schemas unit ## The quick half: style, types, layers, contracts, unit tests

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

schemas: $(READY) ## Check schemas, compatibility, examples and the generated files
	$(BIN)/python -m libs.contracts.check

unit: $(READY)
	$(BIN)/pytest tests/unit tests/contract

integration: $(READY) ## Suites on the real embedded broker and stores, and on real servers
	$(BIN)/pytest tests/integration -m '' $(BESIDE)
	$(BIN)/pytest tests/unit -m on_server $(BESIDE)
	$(BIN)/pytest tests/e2e -m on_server

e2e: $(READY) ## The whole local product, used as its users do
	$(BIN)/pytest tests/e2e tests/chaos tests/soak -n 2 --dist loadfile
	$(BIN)/pytest tests/chaos -m on_server

check-deploy: $(READY) ## Images, compose file, chart and alert rules under their validators
	$(BIN)/pytest tests/deploy

images-test: $(READY) ## The images and docker-compose.yml, built and run by podman (as root)
	$(BIN)/pytest tests/images -o faulthandler_timeout=2400

chaos: $(READY) ## Kill everything at random under load, then count (SEEDS=1,2,3; FULL=1: on real servers)
	$(BIN)/python -m tests.chaos --seeds $(or $(SEEDS),1) $(if $(FULL),--full)

soak: $(READY) ## 2 000 documents and 500 turns in fast forward: nothing may grow
	$(BIN)/python -m tests.soak

bench: $(READY) ## Every benchmark, each a table of ratios
	$(BIN)/python -m tests.bench

bench-eventbus: $(READY) ## The event runtime beside aiokafka, FastStream and Faust (BROKER=kafka)
	$(BIN)/python -m tests.bench.eventbus $(BROKER)

bench-chunking: $(READY) ## Chunking speed beside chonkie, semchunk and LangChain
	$(BIN)/python -m tests.bench.chunking

bench-chunk-quality: $(READY) ## Token-level recall and IoU of chunks beside fixed and recursive ones (SETS=folder ...)
	$(BIN)/python -m tests.bench.chunk_quality $(SETS)

bench-documents: $(READY) ## PDFs from upload to searchable, beside embedding alone (PDFS="folder ...")
	$(BIN)/python -m tests.bench.documents $(PDFS)

bench-executors: $(READY) ## Two executors beside one, on turns that wait for the model
	$(BIN)/python -m tests.bench.executors

bench-local: $(READY) ## The local stack: time to ready, memory, answers while a library loads
	$(BIN)/python -m tests.bench.local_stack

bench-retrieval: $(READY) ## Hybrid search beside embedding the question and each raw search
	$(BIN)/python -m tests.bench.retrieval

lock: ## Resolve the newest allowed packages into requirements.lock
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-header --group dev pyproject.toml -o requirements.lock
	grep '^uv==' requirements.lock | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate - -o setup.lock
	for of in "tools" "helm --no-deps"; do set -- $$of; $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate $$2 \
	  tests/deploy/$$1.in -o tests/deploy/$$1.lock; done

clean: ## Remove the virtual environment and caches (never your data)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
