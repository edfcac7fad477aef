# Two commands are enough on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# exact versions that were tested; torch is pinned there because an open range may pull gigabytes of CUDA
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: install demo test lint bench torture clean

install: $(VENV)/.demo-installed

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo-installed: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[demo]'
	@touch $@

$(VENV)/.dev-installed: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.demo-installed

demo: $(VENV)/.demo-installed
	$(BIN)/cfner demo

test: $(VENV)/.dev-installed
	$(BIN)/ruff check src tests
	$(BIN)/ruff format --check src tests
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n 2 --dist worksteal

# long measurements and long trials; not part of `make test`
bench: $(VENV)/.dev-installed
	$(PIP) --editable '.[dev,bench]'
	$(BIN)/cfner bench speed
	@[ -z "$$CFNER_DATA" ] || $(BIN)/python tests/bench/against_huggingface.py

torture: $(VENV)/.dev-installed
	CFNER_TORTURE=$(if $(QUICK),quick,full) $(BIN)/python -m pytest tests/torture tests/test_server_torture.py \
	  tests/test_hostile_text.py -n 0 -s
	CFNER_SLOW=1 $(BIN)/python -m pytest tests/test_onnx.py -n 0

clean:
	rm -rf $(VENV) runs build dist .mypy_cache .ruff_cache .hypothesis .import_linter_cache
