# `make run` and `make test` do all the set-up they need, on a machine with Python 3.11 or later.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
.DEFAULT_GOAL := help
.PHONY: help run test quick thorough lint bench docs pictures size clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

# uv installs several times faster; where pip cannot get it, pip does the job.
# $(call install,stamp,extras)
define install
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing dobandit$(2) into $(VENV)"
	@test -x $(BIN)/uv || $(BIN)/python -m pip install -q -c constraints.txt uv 2>/dev/null || true
	@if test -x $(BIN)/uv; then \
	  $(BIN)/uv pip install -q --python $(BIN)/python -c constraints.txt -e ".$(2)"; \
	else \
	  $(BIN)/python -m pip install -q -c constraints.txt -e ".$(2)"; \
	fi
	@touch $(1)
endef

$(VENV)/.run: pyproject.toml constraints.txt
	$(call install,$@,[plots])

$(VENV)/.dev: pyproject.toml constraints.txt
	$(call install,$@,[dev])

run: $(VENV)/.run  ## set up and run the paper's five experiments into results/
	$(BIN)/dobandit reproduce

lint: $(VENV)/.dev  ## format check, lint, types, import law
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Tests start many processes: bytecode is kept, so that each begins in half a second instead of two.
test: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/.dev  ## set up, and run all the tests
	$(BIN)/python -m pytest -n 2 --dist worksteal

quick: export PYTHONDONTWRITEBYTECODE =
quick: export DOBANDIT_EXAMPLES = 0.1
quick: $(VENV)/.dev  ## the tests of an inner loop: no servers, browsers, PostgreSQL or statistics
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not (browser or postgres or processes or server or statistics)"

thorough: export DOBANDIT_THOROUGH = 4
thorough: test  ## all the tests, with four times the random examples, kills and races

$(VENV)/.bench: pyproject.toml constraints.txt
	$(call install,$@,[bench])

bench: $(VENV)/.bench  ## print the benchmark tables
	@for file in benchmarks/bench_*.py; do $(BIN)/python $$file || exit 1; done

$(VENV)/.docs: pyproject.toml constraints.txt
	$(call install,$@,[docs])

docs: export DOBANDIT_COMPILE = always
docs: $(VENV)/.docs  ## build the documentation site into site/, without the network
	$(BIN)/python tools/docs/figures.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python tools/docs/check_site.py site

pictures: $(VENV)/.dev  ## make the pictures of the README again (docs/pictures/); needs chromium
	$(BIN)/python tools/docs/pictures.py

size:  ## print lines and modules of src and tests, and the ten largest modules
	@$(PYTHON) tools/size.py

clean:  ## remove the environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis results site docs/figures
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
