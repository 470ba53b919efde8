# The manual of daily work. Every target that begins with a build sets up what it needs.

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help install-c build demo test check bench growth ordered peers samples arrays kmeans streams kept soak doc generate clean setup

# A shell that is not a login shell does not know where rustup has put cargo.
export PATH := $(PATH):$(HOME)/.cargo/bin

# A build that happens once gains nothing from what the next one could reuse.
ifdef CI
export CARGO_INCREMENTAL := 0
endif

VENV := .venv
PYTHON := $(VENV)/bin/python
READY := $(VENV)/.ready
REQUIREMENTS := $(wildcard examples/*/requirements.txt sdk/python/requirements*.txt)
# What build and demo need; the tools of the tests are larger than all of it.
REQUIREMENTS_BUILD := $(filter-out %-test.txt,$(REQUIREMENTS))
# Programs of the examples are started as python3 and find what they import.
WITH_PYTHON := PATH="$(CURDIR)/$(VENV)/bin:$$PATH"
PHOTOGRAPH := examples/palette/astronaut.png
IN_PYTHON := palette-output/python
PURE := ciel-graph ciel-model ciel-node ciel-ordered ciel-protocol ciel-skywriting

SEEDS ?= 1000000
FIRST ?= 0
INPUTS ?= 10000000
KILLS ?= 3000
# Kills of each end of a stream, of each kind, in each mode.
STREAM_KILLS ?= 20
# Random programs, in each language, that are edited between runs.
EDITED ?= 50
OUTPUTS ?= 100000
FAILURES ?= 100000
OUTPUT_BYTES ?= 5000000000
STRANDS ?= 1000000
SPAWNS ?= 1000000
# Fifty times the budget of the store through which they pass.
PASSED_BYTES ?= 50000000000
GROUPS ?=
ROUNDS ?= 5
PAIRS ?= 30
PEERS := target/peers
BESIDE := target/samples
KEPT := target/kept
PREFIX ?= /usr/local

help: ## this page
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'

setup: $(READY) ## make .venv with what build, tests and examples need; installs what is missing

$(READY): scripts/setup $(REQUIREMENTS)
	@scripts/setup $(VENV) $(REQUIREMENTS)
	@touch $@

build: ## the command, optimised, at .venv/bin/ciel, and the Python module beside it
	@scripts/setup $(VENV)
	@$(PYTHON) scripts/wheel/install.py $(REQUIREMENTS_BUILD)
	@echo "built $(VENV)/bin/ciel"

demo: export CIEL_WHEEL_PROFILE := quick
demo: ## build quickly, then reduce a photograph to 16 colours, by a script and by a Python program
	@scripts/setup $(VENV)
	@$(PYTHON) scripts/wheel/install.py $(REQUIREMENTS_BUILD)
	@echo "4/4 running examples/palette/palette.sw, then palette.py" >&2
	@$(WITH_PYTHON) $(VENV)/bin/ciel run examples/palette/palette.sw
	@$(WITH_PYTHON) $(VENV)/bin/ciel run examples/palette/palette.py $(PHOTOGRAPH) 16 $(IN_PYTHON)
	@cmp palette-output/reduced.png $(IN_PYTHON)/reduced.png
	@cmp palette-output/error.png $(IN_PYTHON)/error.png
	@echo "the pictures are palette-output/reduced.png and palette-output/error.png;" >&2
	@echo "those in $(IN_PYTHON), made by the program in Python, are the same byte for byte" >&2
	@echo "$(VENV)/bin/ciel is built quickly; \`make build\` builds it with all optimisations" >&2

test: $(READY) ## everything that must hold: form, lints, all tests with real processes and examples
	@$(WITH_PYTHON) $(PYTHON) scripts/run_tests.py

check: ## the quick part of it: form, lints, unit tests of the crates that decide
	@cargo fmt --all --check -- -l
	@cargo clippy --workspace --all-targets --locked --quiet
	@cargo test --locked --quiet $(PURE:%=-p %) --lib

bench: build ## measure machines, then whole processes, then Python; GROUPS="..." of the second
	@cargo bench --workspace --locked --bench '*'
	@cargo run --release --locked --quiet -p ciel-bench -- --ciel $(VENV)/bin/ciel $(GROUPS)
	@$(PYTHON) bench/python/measure.py

growth: build $(READY) ## predict how jobs grow with cores from measured costs, and check that on real runs
	@cargo build --release --locked --quiet -p ciel-sim --example growth
	@$(WITH_PYTHON) $(PYTHON) bench/growth/growth.py --rounds $(ROUNDS)

ordered: build ## what ordered output costs, beside what people use: PAIRS=30; table at target/ordered.md
	@cargo build --release --locked --quiet -p ciel-files -p ciel-cio --examples
	@$(WITH_PYTHON) $(PYTHON) bench/ordered/compare.py --pairs $(PAIRS) --ciel $(VENV)/bin/ciel

peers: build $(READY) ## compare with Ray, Dask, joblib and others: ROUNDS=5, GROUPS=wide,tree; table, plot
	@scripts/setup $(PEERS) bench/peers/requirements.txt
	@cargo build --release --locked --quiet -p ciel-bench --example limits
	@cc -O2 -fopenmp bench/peers/limits.c -o $(PEERS)/limits
	@$(WITH_PYTHON) $(PYTHON) bench/peers/compare.py --rounds $(ROUNDS) --only "$(GROUPS)" \
		--json $(PEERS)/figures.json $(PEERS)
	@$(PEERS)/bin/python bench/peers/plot.py \
		$(PEERS)/figures.json $(PEERS)/figures.svg $(PEERS)/grains.svg
	@echo "the plots are $(PEERS)/figures.svg and $(PEERS)/grains.svg" >&2

samples: build ## the example samples beside Snakemake, with a failure and edits: ROUNDS=5; a table
	@scripts/setup $(BESIDE) bench/samples/requirements.txt
	@$(WITH_PYTHON) $(PYTHON) bench/samples/compare.py --rounds $(ROUNDS) \
		$(VENV)/bin/ciel $(BESIDE)/bin/snakemake

arrays: build ## an array made by one Python task and read by ten, beside Ray and one copy: ROUNDS=5
	@scripts/setup $(PEERS) bench/peers/requirements.txt
	@$(WITH_PYTHON) $(PEERS)/bin/python bench/arrays/compare.py --rounds $(ROUNDS) \
		$(VENV)/bin/ciel $(PEERS)/bin/python

kmeans: build ## the example kmeans with and without what workers keep, beside MPI: ROUNDS=5; a table
	@scripts/setup $(PEERS) bench/peers/requirements.txt
	@$(WITH_PYTHON) $(PEERS)/bin/python bench/kmeans/compare.py --runs $(ROUNDS) \
		$(VENV)/bin/ciel $(PEERS)/bin/python

streams: build ## modes of streams beside pipes, a ring, the page cache and Ray: ROUNDS=5; tables, JSON
	@scripts/setup $(PEERS) bench/peers/requirements.txt
	@cc -O2 bench/streams/ends.c -o $(PEERS)/ends
	@$(WITH_PYTHON) $(PEERS)/bin/python bench/streams/compare.py --rounds $(ROUNDS) \
		--json $(PEERS)/streams.json $(VENV)/bin/ciel $(PEERS)/ends $(PEERS)/bin/python
	@echo "the figures are in $(PEERS)/streams.json" >&2

kept: build ## kept results: hits beside joblib.Memory, hashing, keeping, an edit, the audit: ROUNDS=5
	@scripts/setup $(KEPT) bench/kept/requirements.txt
	@$(WITH_PYTHON) $(PYTHON) bench/kept/compare.py --rounds $(ROUNDS) \
		$(VENV)/bin/ciel $(KEPT)/bin/python

soak: build ## random runs of the simulator, SEEDS FIRST; INPUTS of readers; KILLS of real runs; extremes
	@cargo run --release --locked --quiet -p ciel-sim --example soak -- $(SEEDS) $(FIRST)
	@cargo run --release --locked --quiet -p ciel-fuzz --example fuzz -- $(INPUTS) $(FIRST)
	@$(WITH_PYTHON) CIEL_KILLS=$(KILLS) cargo test --locked --quiet \
		-p ciel-cli --test kills -- --nocapture
	@$(WITH_PYTHON) CIEL_STREAM_KILLS=$(STREAM_KILLS) $(PYTHON) -m pytest -q -k "killed or dies or cut" \
		sdk/python/tests/test_killed_readers.py sdk/python/tests/test_stream_modes.py \
		sdk/python/tests/test_tcp_streams.py
	@$(WITH_PYTHON) CIEL_STREAM_BYTES=$(OUTPUT_BYTES) $(PYTHON) -m pytest -q -k large \
		sdk/python/tests/test_stream_cases.py
	@CIEL_STREAM_BYTES=$(OUTPUT_BYTES) cargo test --locked --quiet \
		-p ciel-data-plane --test plane large -- --nocapture
	@CIEL_STREAM_KILLS=$(STREAM_KILLS) cargo test --locked --quiet \
		-p ciel-data-plane --test plane killed
	@$(WITH_PYTHON) CIEL_EDITED_PROGRAMS=$(EDITED) $(PYTHON) -m pytest -q \
		sdk/python/tests/test_kept_random.py
	@$(WITH_PYTHON) CIEL_OUTPUTS=$(OUTPUTS) CIEL_FAILURES=$(FAILURES) \
		CIEL_OUTPUT_BYTES=$(OUTPUT_BYTES) CIEL_SPAWNS=$(SPAWNS) cargo test --locked --quiet \
		-p ciel-cli --test extremes -- --nocapture --test-threads=1
	@$(WITH_PYTHON) CIEL_PASSED_BYTES=$(PASSED_BYTES) $(PYTHON) -m pytest -q -s \
		sdk/python/tests/test_flat_store.py
	@$(WITH_PYTHON) CIEL_SPAWNS=$(SPAWNS) CIEL_CHAIN_COUNT=$(SPAWNS) $(PYTHON) -m pytest -q -s \
		sdk/python/tests/test_bounded_memory.py \
		sdk/python/tests/test_in_place_natively.py -k "bounded or long_chain"
	@CIEL_STRANDS=$(STRANDS) CIEL_ORDERED_BYTES=$(OUTPUT_BYTES) cargo test --locked --quiet \
		-p ciel-cli --test ordered_files sizes -- --nocapture --test-threads=1
	@$(WITH_PYTHON) CIEL_STRANDS=$(STRANDS) $(PYTHON) -m pytest -q -s -k many \
		sdk/python/tests/test_ordered_files.py sdk/python/tests/test_ordered_task_files.py
	@CIEL_OUTPUT_BYTES=$(OUTPUT_BYTES) cargo test --release --locked --quiet \
		-p ciel-files --test bad_input
	@CIEL_OUTPUT_BYTES=$(OUTPUT_BYTES) cargo test --locked --quiet \
		-p ciel-files-c --test interface million

install-c: ## the library ciel_ordered for C and C++, its headers and pkg-config file, to PREFIX=/usr/local
	@cargo build --release --locked --quiet -p ciel-files-c
	@scripts/install_c "$${CARGO_TARGET_DIR:-target}/release" "$(PREFIX)"

doc: ## the pages of our crates from their sources, at target/doc
	@RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

generate: ## write again what tools write: the wire types of the executor protocol
	@cargo run --locked --quiet -p xtask -- generate

clean: ## remove what was built, and .venv; runs and their output stay
	@cargo clean
	@rm -rf $(VENV)
