# The two commands of the README, and a few more. Each does its own set-up: `make table2`, `make test`.
PYTHON ?= python3
BIN := .venv/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
# No default command asks a hub.
export HF_HUB_OFFLINE ?= 1
export HF_DATASETS_OFFLINE ?= 1
# Where it is set, as in many containers, each of a table's jobs would compile what it imports again.
unexport PYTHONDONTWRITEBYTECODE

WORDS = $(foreach profile,$(PROFILES),--profile $(profile)) $(if $(CONFIG),--config $(CONFIG))

.PHONY: setup interpreter quick table2 demo check plan docs gpu-check gpu-check-pack gpu-check-bundle gpu-check-packs
.PHONY: test test-slow faults compiled test-here test-cluster test-triton offline-check
.PHONY: lint lint-words lint-engine lint-studies lock sbom clean

# A missing interpreter gets its own message, before its version is checked.
FOUND = command -v $(firstword $(PYTHON)) >/dev/null || \
  { echo "error: there is no $(PYTHON); set PYTHON=/path/to/python3"; exit 1; }

setup: .venv/complete

.venv/complete: requirements.lock requirements-cuda.lock pyproject.toml | interpreter
	@$(FOUND)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11, 2))' || { echo "error: $(PYTHON) is older than 3.11.2; set PYTHON=/path/to/a/newer/python3"; exit 1; }
	@echo "set-up: virtual environment and pinned packages (a few minutes, once)"
	$(PYTHON) -m venv .venv
	sh envs/install_locks.sh $(BIN)/python --quiet --disable-pip-version-check --no-compile
	@# On every core, which pip does on one; what some packages bring for another Python does not compile. A third of all
	@# is tests of packages and models of transformers: who imports one compiles it.
	@$(BIN)/python -m compileall -qq -j 0 -x '/tests/|/transformers/models/' .venv/lib >/dev/null 2>&1 || true
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# If PYTHON is given, everything runs on it: a .venv made from another one is refused.
WHICH := import sys; print(sys.base_prefix, sys.version.split()[0])
interpreter:
	@$(if $(filter file,$(origin PYTHON)),,$(FOUND); test ! -e .venv || \
	  test "$$($(BIN)/python -c '$(WHICH)')" = "$$($(PYTHON) -c '$(WHICH)')" || \
	  { echo "error: .venv is not of $(PYTHON); remove it (rm -r .venv), or leave out PYTHON"; exit 1; })

table2: setup
	@$(BIN)/python -m plumbline.operate.locks.workflow_lock
	$(BIN)/snakemake results/table2.csv
	@$(BIN)/python -m plumbline show results/table2.csv

# A first look, in a minute: make quick, or with another method of the transfer study, make quick METHOD=ssmax. That
# something was decided is what it is for: what was, plumbline try says by its exit code.
METHOD ?= qknorm

quick: setup
	@$(BIN)/python -m plumbline.operate.locks.workflow_lock
	@$(BIN)/python -m plumbline try '$(METHOD)' --study transfer --quick || { code=$$?; test $$code -ge 10 -a $$code -le 13 || exit $$code; }

# All targets at demo size: of every study, or make demo STUDY=transfer.
demo: setup
	@$(BIN)/python -m plumbline.operate.locks.workflow_lock
	$(BIN)/snakemake all $(if $(STUDY),--config 'studies=[$(STUDY)]')

# What would stop a run, before it starts: make check, or with the arguments of the run:
# make check TARGETS=results/table2.csv PROFILES="slurm my-site" CONFIG="preset=mini 'data={source: local}'".
# Whether the hub may be asked is for the shell that will run it, hence not for the export above.
check: setup
	@$(if $(filter file,$(origin HF_HUB_OFFLINE)),env -u HF_HUB_OFFLINE -u HF_DATASETS_OFFLINE )$(BIN)/python \
	  -m plumbline check $(TARGETS) $(WORDS)

# What each target costs: make plan, or make plan CONFIG="preset=paper machine=h100", or with the PROFILES of the run.
plan: setup
	@$(BIN)/python -m plumbline plan $(WORDS)

# What a GPU does: correctness, speed next to lower bounds, every method's compiled step.
# The same command continues (docs/gpu-box.md): make gpu-check MINUTES=60 GPU_CHECK=--retry-failed
MINUTES ?= 9.5
gpu-check: setup
	@$(BIN)/python -m plumbline.operate.locks.workflow_lock
	@$(BIN)/python -m benchmarks.gpu_check --minutes $(MINUTES) $(GPU_CHECK) \
	  || test $$? -eq 75

# What that needs on a machine without a network, made on one with: mini's packs and items, and every package as a
# wheel (WHEELS= leaves them out, for a machine that has them). Carried there as gpu-check-pack.tar.
GPU_CHECK_PRESET ?= mini
WHEELS ?= wheels
GET_WHEELS = $(BIN)/python -m pip wheel --quiet --no-deps --require-hashes --wheel-dir work/$(WHEELS) --requirement
gpu-check-pack: setup
	@$(BIN)/python -m plumbline.operate.locks.workflow_lock
	$(BIN)/snakemake results/$(GPU_CHECK_PRESET)/transfer/table2.csv --until pack items \
	  --config preset=$(GPU_CHECK_PRESET)
	$(if $(WHEELS),$(GET_WHEELS) requirements.lock)
	$(if $(WHEELS),ls work/$(WHEELS)/torch-*+cpu-*.whl >/dev/null 2>&1 || $(GET_WHEELS) requirements-cuda.lock)
	tar --create --file gpu-check-pack.tar work/$(GPU_CHECK_PRESET)/corpora $(if $(WHEELS),work/$(WHEELS))

# For a machine that has a GPU and its own torch, and no index: the files of the commit, and the package that it lacks,
# for its Python (FOR): gpu-check-bundle.tar (docs/gpu-first-day.md). What is in no commit would stay behind.
FOR ?= 3.12
CARRIED = work/gpu-check
gpu-check-bundle: setup
	@! git status --porcelain -- src studies config benchmarks | grep . >&2 \
	  || { echo "error: in no commit: commit these, or git stash -u" >&2; exit 1; }
	@rm -rf $(CARRIED) && mkdir -p $(CARRIED) && git rev-parse HEAD >$(CARRIED)/commit
	@sed -n '/^msgspec==/,/[^\\]$$/p' requirements.lock >$(CARRIED)/requirements.txt
	@$(BIN)/python -m pip install --quiet --no-deps --only-binary=:all: --require-hashes --target $(CARRIED)/packages \
	  --python-version $(FOR) --implementation cp --platform manylinux2014_x86_64 --platform manylinux_2_28_x86_64 \
	  --requirement $(CARRIED)/requirements.txt
	@git archive --output gpu-check-bundle.tar HEAD
	@tar --append --file gpu-check-bundle.tar $(CARRIED)
	@ls -sh gpu-check-bundle.tar

# Sequences of the length that the key_norms study's runs at paper size read (docs/gpu-box.md).
GPU_CHECK_PACKS = work/mini/corpora/smollm_mix/packs/context2048
gpu-check-packs: setup
	@$(BIN)/python -m plumbline.operate.locks.workflow_lock
	$(BIN)/snakemake $(GPU_CHECK_PACKS)/train $(GPU_CHECK_PACKS)/validation --config preset=mini

# The documentation as a site, every link checked: site/index.html.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# What a type checker makes of pandas' and matplotlib's stubs, and of options in dictionaries, says little of a study.
LOOSE = arg-type assignment call-overload dict-item index operator return-value str-bytes-safe type-var union-attr \
  var-annotated

lint: setup
	$(MAKE) --jobs=2 --output-sync=target lint-engine lint-studies lint-words

lint-words: setup
	$(BIN)/ruff check src studies tests benchmarks examples envs setup.py
	$(BIN)/ruff format --check src studies tests benchmarks examples envs setup.py
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/snakemake --lint

lint-engine: setup
	$(BIN)/mypy

# With the rooms that are full of frames too: a rename that misses a caller is seen. Its own cache: mypy throws away what
# was checked with other options.
lint-studies: setup
	$(BIN)/mypy --cache-dir=.mypy_cache/studies $(LOOSE:%=--disable-error-code=%) studies \
	  $(foreach room,cli evaluate operate results,src/plumbline/$(room))

# File after file to whoever is free, in the order of tests/conftest.py: the longest first.
TWO_WORKERS = $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# The cluster's tests mostly wait, so all others run beside them: in one session, since each collects and imports anew.
test: lint compiled
	$(MAKE) --jobs=2 --output-sync=target test-here test-cluster

# What holds at a larger size what a test of the above holds at a small one.
test-slow: compiled
	$(TWO_WORKERS) -m slow --durations=15

# Every fault at every step of the workflow, 371 cells: two to three hours on two cores. What was carried out of the
# present code is not again: make faults, or make faults CELLS="pretrain kill report.swapped"
faults: setup
	$(BIN)/python -m tests.faults.matrix $(CELLS) --table tests/faults/matrix.md

# Tests copy the project, and what starts in a copy would compile it again.
compiled: setup
	@$(BIN)/python -m compileall -qq -j 2 src studies benchmarks

test-here: setup
	$(TWO_WORKERS) -m "not cluster and not slow" --durations=25

test-cluster: setup
	$(BIN)/python -m pytest -m "cluster and not slow" --durations=5 tests/cluster

# The kernels, interpreted and compiled for GPUs, with a Triton that a GPU machine may bring: make test-triton TRITON=3.6.0
# Its wheel (180 MB) stands before the pinned one; interpreters before 3.7 know no numpy since 2.4.
TRITON ?= 3.6.0
test-triton: setup
	$(BIN)/python -m pip install --quiet --upgrade --no-deps --target work/triton-$(TRITON) triton==$(TRITON) 'numpy<2.4'
	export PYTHONPATH=work/triton-$(TRITON):src; $(BIN)/python -c 'import triton; assert triton.__version__ == "$(TRITON)"' \
	  && $(BIN)/python -m pytest -n 0 tests/model/kernels

# A torch that is on no index is accepted by its hash too: make lock WHEEL=/path/to/torch-2.13.0+cpu-....whl
lock:
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip install --quiet uv $(or $(WHEEL),torch==2.13.0)
	.venv-lock/bin/python -m pip install --quiet --editable '.[pipeline,test]'
	.venv-lock/bin/python envs/write_locks.py $(WHEEL)
	rm -rf .venv-lock

# No process asks another machine: a study at smoke and two tries under strace, some 15 minutes (SECURITY.md).
offline-check: setup
	$(BIN)/python -m tests.offline_check

# The bill of materials of the locks, as each wheel has it in its .dist-info/sboms.
sbom: interpreter
	$(PYTHON) envs/write_sbom.py dist/plumbline-lm.cdx.json

# Removes what was made; the README of results/ is part of the repository.
clean:
	find results -mindepth 1 -maxdepth 1 ! -name README.md -exec rm -rf {} +
	rm -rf work logs .snakemake
