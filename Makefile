# Two commands are enough on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps
# exact versions, every file checked against its hash; no dependency resolution, no builds from source
LOCKED := $(PIP) --require-hashes --only-binary :all:

.PHONY: install demo test style types imports docs coverage bench yardstick league notebooks torture audit clean

install: $(VENV)/.demo-installed

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# use the CPU build of torch where it is offered; the usual build for Linux also needs gigabytes of CUDA
$(VENV)/.demo-installed: pyproject.toml requirements.lock requirements-torch-cpu.lock requirements-torch.lock | $(BIN)/python
	$(LOCKED) --requirement requirements.lock
	$(LOCKED) --requirement requirements-torch-cpu.lock || $(LOCKED) --requirement requirements-torch.lock
	$(PIP) --no-build-isolation --editable .
	@touch $@

# one of these packages has no wheel: it is built with the tools of the first lock. Not compiled: most of their
# modules are never imported
$(VENV)/.dev-installed: $(VENV)/.demo-installed requirements-dev.lock
	$(LOCKED) --no-compile --only-binary :none: --no-build-isolation --requirement requirements-dev.lock
	$(BIN)/python -m pip check
	@touch $@

demo: $(VENV)/.demo-installed
	$(BIN)/cfner demo

test: $(VENV)/.dev-installed
	$(MAKE) --no-print-directory --jobs 2 --output-sync style types imports
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=25

style:
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks

types:
	$(BIN)/mypy

imports:
	$(BIN)/lint-imports

# the documentation as a site: open site/index.html. Fails on a broken link or a missing page
docs: $(VENV)/.dev-installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

# test coverage. Not part of `make test`: in Python 3.11 it takes half as long again
coverage: $(VENV)/.dev-installed
	$(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-report=term

# long measurements; not part of `make test`. Flags of the first: make bench BENCH="--json --check"
bench: $(VENV)/.dev-installed
	$(BIN)/python benchmarks/speed.py $(BENCH)
	@[ -z "$$CFNER_DATA" ] || $(BIN)/python benchmarks/against_huggingface.py

# methods and their bounds on fixed streams: hours. An interrupted run resumes, and published runs are not
# computed again (delete runs/yardstick to begin with them). CFNER_DATA is the folder with
# the corpora; for other seeds, streams or methods: make yardstick YARDSTICK="--seeds 2 --stream fewnerd8"
PUBLISHED := docs/results/yardstick
yardstick: $(VENV)/.demo-installed
	@[ -n "$$CFNER_DATA" ] || { echo "Set CFNER_DATA to the folder with the corpora (see docs/results.md)."; exit 2; }
	@[ -d runs/yardstick ] || $(BIN)/cfner bench merge $(PUBLISHED) --out runs/yardstick
	$(BIN)/cfner bench yardstick "$$CFNER_DATA" --out runs/yardstick $(YARDSTICK)
	$(BIN)/cfner bench report runs/yardstick

# all methods, each at its best setting, on the yardstick's streams; shares its runs. For some methods or
# seeds: make league LEAGUE="--methods own-other,rdp --seeds 3"
league: $(VENV)/.demo-installed
	@[ -n "$$CFNER_DATA" ] || { echo "Set CFNER_DATA to the folder with the corpora (see docs/results.md)."; exit 2; }
	@[ -d runs/yardstick ] || $(BIN)/cfner bench merge $(PUBLISHED) --out runs/yardstick
	$(BIN)/cfner bench league --data "$$CFNER_DATA/snips-slots" --data "$$CFNER_DATA/fewnerd8" \
	  --data "$$CFNER_DATA/multiconer2en" --out runs/yardstick $(LEAGUE)
	$(BIN)/cfner bench report runs/yardstick

# run the notebooks with the encoder that they name, and keep what they show; `make test` runs them with a tiny one
notebooks: $(VENV)/.dev-installed
	$(BIN)/python .ci/run_notebooks.py

# these also run in `make test`, with fewer rounds; the figures are printed
TORTURE := tests/test_server_torture.py tests/test_hostile_text.py tests/test_supply_chain.py tests/test_guide.py \
  tests/test_notebooks.py tests/test_site.py

# one thread: tiny models are slower with more
torture: $(VENV)/.dev-installed
	OMP_NUM_THREADS=1 CFNER_TORTURE=$(if $(QUICK),quick,full) $(BIN)/python -m pytest tests/torture $(TORTURE) -n 0 -s
	CFNER_SLOW=1 $(BIN)/python -m pytest tests/test_onnx.py tests/test_package.py -n 0

# check the locked versions for known vulnerabilities; needs a network
audit: $(VENV)/.dev-installed
	$(BIN)/python .ci/audit.py

clean:
	rm -rf .coverage* $(VENV) runs build dist site .mypy_cache .ruff_cache .hypothesis .import_linter_cache
