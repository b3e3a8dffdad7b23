# Needs make and Python ≥ 3.10 with venv and pip; everything else is installed into .venv.

VENV := .venv
BIN := $(VENV)/bin

# PyCUDA if there is an NVIDIA driver, else an OpenCL runtime for the CPU.
find_extra = PATH="$$PATH:/sbin:/usr/sbin"; \
  driver() { { ldconfig -p | grep -F libcuda.so.1 && ls -d /dev/nvidiactl /dev/dxg | grep .; } \
             || nvidia-smi -L; }; \
  if driver; then extra=cuda; else extra=cpu; fi >/dev/null 2>&1; echo $$extra

suits = -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null
find_python = \
  for python in python3 python3.14 python3.13 python3.12 python3.11 python3.10 python; do \
    if $$python $(suits); then echo $$python; break; fi; \
  done

ifndef EXTRA
EXTRA := $(shell $(find_extra))
endif
PYTHON ?= $(shell $(find_python))
# Extra arguments for a target's command: make bench ARGS="--format github"
ARGS ?=
# Tests run in two processes (one: ARGS="-n 0"); more would disturb each other's timings.
TEST_ARGS := -n 2 --dist worksteal

# The toolkit's installer puts nvcc there, but does not add it to PATH.
export PATH := $(PATH):/usr/local/cuda/bin
# Workers start in half the time if Python may cache bytecode.
unexport PYTHONDONTWRITEBYTECODE

# What pip installs of it. PyCUDA has no wheels; `matbench doctor --install` builds it.
ifeq ($(EXTRA),cuda)
WHEELS :=
else
WHEELS := $(EXTRA),
endif

# Markers of what is installed; each includes those above it.
RUN := $(VENV)/.installed-$(EXTRA)
DEV := $(VENV)/.installed-$(EXTRA)-dev
MUTANTS := $(VENV)/.installed-$(EXTRA)-mutants
SITE := $(VENV)/.installed-site

.DEFAULT_GOAL := help
.NOTPARALLEL: # nothing else may run while kernels are timed
.PHONY: help bench smoke quick test test-long test-gpu test-gpu-long golden lint format types check mutants \
  docs site build hooks clean

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

bench: $(RUN) ## Measure the tutorial's kernels at n = 256 and 1000
	@$(BIN)/matbench run --sizes 256,1000 $(ARGS)
	@printf '%s\n' "" "Next, write your own kernel and see its times whenever you save it:" \
	  "  . $(BIN)/activate" "  matbench new mine" "  matbench watch mine.cu" >&2

smoke: $(RUN) ## Check every kernel at small awkward sizes, in seconds
	@$(BIN)/matbench run --smoke $(ARGS)

quick: $(DEV) ## Run the fast tests, while developing
	@$(BIN)/python -m pytest -m "not gpu and not slow and not long" $(TEST_ARGS) $(ARGS)

test: $(DEV) ## Run the tests that need no GPU (5 to 7 minutes on two cores)
	@$(BIN)/python -m pytest -m "not gpu and not long" $(TEST_ARGS) $(ARGS)

test-long: $(DEV) ## Run the long tests, before a release: the same with many more values
	@$(BIN)/python -m pytest -m "(long or hypothesis) and not gpu" --hypothesis-profile=long \
	  $(TEST_ARGS) $(ARGS)

test-gpu: $(DEV) ## Run the tests that need an NVIDIA GPU
	@$(BIN)/python -m pytest -m "gpu and not alone and not long" -n 14 --dist worksteal $(ARGS)
	@$(BIN)/python -m pytest -m "gpu and alone and not long" $(ARGS)

test-gpu-long: $(DEV) ## Run the long tests that need an NVIDIA GPU, before a release
	@$(BIN)/python -m pytest -m "gpu and long and not alone" -n 8 --dist worksteal $(ARGS)
	@$(BIN)/python -m pytest -m "gpu and long and alone" $(ARGS)

lint: $(DEV) ## Check format and style
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check

format: $(DEV) ## Fix format and style
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

golden: $(DEV) ## Rewrite the golden files: accept what commands print now
	@$(BIN)/python -m pytest $$(grep -rl _regression tests --include='test_*.py') -n 0 -m "not gpu" --regen-all $(ARGS)

types: $(DEV) ## Check types
	@$(BIN)/mypy

check: lint types test ## Run lint, types and test

mutants: $(MUTANTS) ## Break lines at random, and count how many the tests notice
	@$(BIN)/python benchmarks/mutants.py $(ARGS)

docs: $(DEV) ## Generate the tables, pictures and pages of the documentation
	@$(BIN)/python docs/generate.py

# mkdocs-material, which gets fixes until May 2027, says at each start what follows it.
site: $(SITE) ## Build the site of these pages into build/site/ (needs Python 3.11)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict --config-file docs/mkdocs.yml
	@echo "Open build/site/index.html in a browser."

build: $(DEV) ## Build the wheel and the source distribution into dist/
	@$(BIN)/hatchling build

hooks: $(DEV) ## Install a hook that runs lint and types before every commit
	@$(BIN)/pre-commit install

clean: ## Remove everything that make has created, including .venv
	@rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/pip:
	@python="$(PYTHON)"; "$$python" $(suits) || { echo \
	  "Python 3.10 or newer with venv and pip is needed; name one: make PYTHON=…/python3" >&2; \
	  exit 1; }; "$$python" -m venv $(VENV)

# Editable installs from pyproject.toml alone need pip 21.3.
define install
@echo "Installing matbench[$(EXTRAS)] into $(VENV) …"
@$(BIN)/python -c 'import pip, sys; sys.exit(pip.__version__ < "21.3")' \
  || $(BIN)/python -m pip install -qq --upgrade pip
@$(BIN)/python -m pip install -qq --disable-pip-version-check $(EXACT) --editable '.[$(EXTRAS)]'
@test $(EXTRA) = cpu || $(BIN)/matbench doctor --install || { \
  echo "To measure the CPU instead: make EXTRA=cpu $(MAKECMDGOALS)"; exit 1; } >&2
@touch $@
endef

$(RUN): EXTRAS = $(WHEELS)plots
$(RUN): pyproject.toml | $(BIN)/pip
	$(install)

$(DEV): EXTRAS = $(WHEELS)plots,dev
$(DEV) $(MUTANTS) $(SITE): EXACT = --constraint constraints.txt
$(DEV): pyproject.toml constraints.txt | $(BIN)/pip
	$(install)
	@touch $(RUN)

$(MUTANTS): EXTRAS = $(WHEELS)plots,dev,mutants
$(MUTANTS): pyproject.toml constraints.txt | $(BIN)/pip
	$(install)
	@touch $(RUN) $(DEV)

# It measures nothing.
$(SITE): EXTRAS = site
$(SITE): EXTRA = cpu
$(SITE): pyproject.toml constraints.txt | $(BIN)/pip
	$(install)
