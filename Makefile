# `make demo` and `make test` need nothing but Python 3.11 and this folder.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-matrix test-versions accuracy bench quick lint golden clean

demo: $(VENV)/ready
	rm -rf demo && mkdir demo
	cd demo && ../$(BIN)/msgen --style functional --amp O2 --accum 4 --model lenet5 --dataset digits
	cd demo && ../$(BIN)/python train.py

test: $(VENV)/ready lint
	$(BIN)/python -m pytest -n 2 --dist worksteal

# What runs in a minute, without MindSpore.
quick: $(VENV)/ready lint
	$(BIN)/python -m pytest -n 2 tests/test_rendering.py tests/test_goldens.py tests/test_cli.py tests/test_rules.py

lint: $(VENV)/ready
	$(BIN)/black --check --quiet generator tests examples benchmarks
	$(BIN)/ruff check --quiet generator tests benchmarks
	$(BIN)/mypy

# Every combination of style, level, loss scale, accumulation, mode and optimizer:
# executed on the CPU, and through the Ascend dry run; hours. Writes docs/matrix/.
test-matrix: $(VENV)/ready
	$(BIN)/python tests/matrix.py

# The suites that execute scripts, with every MindSpore that they are meant for; hours.
test-versions: $(VENV)/ready
	$(BIN)/nox --session versions

# The table of what mixed precision costs in accuracy; about 5 minutes.
accuracy: $(VENV)/ready
	$(BIN)/python tests/accuracy.py

# How fast the scripts and the command are; under 15 minutes. Writes benchmarks/. With
# PyTorch too, where it is installed: `.venv/bin/pip install torch` before.
bench: $(VENV)/ready
	$(BIN)/pip install --quiet --editable '.[mindspore,examples,bench]'
	$(BIN)/python -m benchmarks

# Write the golden scripts and the examples anew, to be read in the diff.
golden: $(VENV)/ready
	$(BIN)/python tests/golden_specs.py

$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable '.[mindspore,examples,dev]'
	touch $@

clean:
	rm -rf $(VENV) demo build dist .mypy_cache .pytest_cache .ruff_cache
