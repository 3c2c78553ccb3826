# make setup   the virtual environment in .venv, with the kernels compiled
# make demo    what Karpool does, on a cluster in memory; writes karpool-demo.html
# make quick   the tests that need no cluster and little time: under two minutes, to be run all the time
# make test    what must hold before a change is merged; its last lines say what it skipped, and what it left for others
# make test-long   what takes minutes: a newcomer's whole way, the image, large consoles, sweeps of the documentation
# make test-nightly   property tests with new examples, sixty times as many, and a month of Jobs; over half an hour
# make robustness     10,000 random fault schedules on virtual clusters, every history checked; about half an hour
# make conformance    Karpenter's own end-to-end suites, against Karpool; hours. Writes docs/conformance.md
# make test-matrix    the quick tests with every Python from 3.11 to 3.14 that this machine has, or with ARGS=--fetch can have
# make bench   the benchmarks, at small sizes
# make bench-live   the controller on a control plane with 1,000 nodes and 20,000 pods
# make bench-peers  Karpenter and Karpool on the same clusters, in files and live, over an hour. Writes docs/peers.md
# make release the files of a release, from a clean tree: wheel, sdist, chart, plugin, bill of materials, checksums
# make docs    the documentation as a site, in build/site; it is read without a network
# make clean   removes what the others made

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.docs-installed
# Debian's python3 comes without the parts that venv needs.
INSTALL_VENV := apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv
KERNELS := src/karpool/optimization/kernels
# Warms the on-disk kernel cache; takes no time when the sources have not changed.
COMPILE_KERNELS := if [ -e $(KERNELS)/__main__.py ]; then $(BIN)/python -m karpool.optimization.kernels; fi

# Tests add what they skip; `make test` prints it at its end.
SKIP_LIST := $(VENV)/skipped-tests
WITH_SKIP_LIST := KARPOOL_SKIP_LIST=$(SKIP_LIST)
SLOW := 'slow and not kubernetes and not ray and not long'
LIVE := 'kubernetes and not long'

BENCHMARKS := loading scheduling scan plan 'order --clusters 5' 'quality --clusters 2' 'applied --clusters 1' 'foresight --clusters 1' simulation \
	'recording --nodes 200' 'grace --length 1h' 'console --seconds 5' 'clouds --nodes 12 --effort 0' 'sweep --settings 2 --seeds 1'

.PHONY: setup demo quick test test-long test-nightly robustness conformance test-matrix bench bench-live bench-peers docs release clean
.DEFAULT_GOAL := setup

setup: $(STAMP)

$(STAMP): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { $(INSTALL_VENV); }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@echo 'Compiling kernels: about a minute, once'
	@$(COMPILE_KERNELS)
	@touch $@

demo: setup
	@$(COMPILE_KERNELS)
	@$(BIN)/karpool demo

test: setup $(DOCS_STAMP)
	@$(COMPILE_KERNELS)
	@scripts/ensure-chromium
# Exit code 3: it cannot be had, and the tests that need it are skipped.
	@scripts/ensure-promtool >/dev/null || [ $$? -eq 3 ]
	@scripts/ensure-shells >/dev/null || [ $$? -eq 3 ]
# Without Go, or if the build fails (exit code 3), the tests that need a real API server are skipped, and say so.
	@scripts/ensure-helm >/dev/null || [ $$? -eq 3 ]
	@scripts/ensure-kubectl >/dev/null || [ $$? -eq 3 ]
	@scripts/ensure-kubernetes >/dev/null || [ $$? -eq 3 ]
	@scripts/ensure-karpenter karpenter regression disruption >/dev/null || [ $$? -eq 3 ]
	$(BIN)/ruff check --quiet
	$(BIN)/ruff format --check --quiet
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	@rm -f $(SKIP_LIST)
# File by file, so that what the tests of a file share is worked out once.
	$(WITH_SKIP_LIST) $(BIN)/pytest -n 2 --dist loadfile -q -m 'not kubernetes and not slow'
# Browsers and processes share the machine with other tests: what failed may try again, alone; both results are printed.
	$(WITH_SKIP_LIST) $(BIN)/pytest -n 2 --dist loadfile -q -m $(SLOW) || \
		$(BIN)/pytest -q -m $(SLOW) --last-failed --last-failed-no-failures none
# A driver of Ray can crash in threads of its own, and takes whatever shares its process with it: that, and only that,
# is tried again.
	$(WITH_SKIP_LIST) $(BIN)/pytest -q -m ray || { [ $$? -gt 128 ] && $(BIN)/pytest -q -m ray; }
# Five real processes per worker do, too.
	$(WITH_SKIP_LIST) $(BIN)/pytest -n 2 -q -m $(LIVE) || \
		$(BIN)/pytest -q -m $(LIVE) --last-failed --last-failed-no-failures none
	$(BIN)/python scripts/robustness --count 200
	@[ -s $(SKIP_LIST) ] && { echo "SKIPPED, and therefore not tested:"; cat $(SKIP_LIST); } || echo "Skipped: nothing"
	@echo "Left for make test-long, test-nightly, robustness and conformance: what takes minutes, or hours"

quick: setup
	@$(COMPILE_KERNELS)
	$(BIN)/pytest -n 2 --dist loadfile -q -m 'not kubernetes and not slow'

test-long: setup
	@$(COMPILE_KERNELS)
	@scripts/ensure-chromium
	@scripts/ensure-promtool >/dev/null || [ $$? -eq 3 ]
	@scripts/ensure-bare-root >/dev/null || [ $$? -eq 3 ]
	@scripts/ensure-helm >/dev/null || [ $$? -eq 3 ]
	@scripts/ensure-kubectl >/dev/null || [ $$? -eq 3 ]
	@scripts/ensure-kubernetes >/dev/null || [ $$? -eq 3 ]
	$(BIN)/pytest -n 2 --dist loadfile -q -m long

# SEED repeats a run: make test-nightly SEED=1234
test-nightly: SEED := $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
test-nightly: setup
	@$(COMPILE_KERNELS)
	@echo "Seed: $(SEED). To repeat this run: make test-nightly SEED=$(SEED)"
	$(BIN)/pytest -n 2 -q -m "hypothesis or soak" --hypothesis-profile nightly --hypothesis-seed $(SEED) --timeout 7200

# SEED is that of the first schedule, COUNT how many there are: make robustness SEED=1234 COUNT=1
robustness: SEED := $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
robustness: COUNT := 10000
robustness: setup
	@$(COMPILE_KERNELS)
	@echo "Seed: $(SEED). To repeat this run: make robustness SEED=$(SEED) COUNT=$(COUNT)"
	$(BIN)/python scripts/robustness --seed $(SEED) --count $(COUNT)

# ARGS are those of scripts/conformance: make conformance ARGS='--suite disruption --focus Drift'
conformance: setup
	@$(COMPILE_KERNELS)
	$(BIN)/python scripts/conformance $(ARGS)

# ARGS are those of scripts/test-matrix: make test-matrix ARGS=--fetch
test-matrix: setup
	@$(BIN)/python scripts/test-matrix $(ARGS)

bench: setup
	@$(COMPILE_KERNELS)
	@scripts/ensure-chromium
	@set -e; for question in $(BENCHMARKS); do \
		echo "$$question"; set -- $$question; name=$$1; shift; PYTHONPATH=. $(BIN)/python benchmarks/$$name.py "$$@" --json; \
	done

# Apart from the others: it needs the Kubernetes programs, and is long.
bench-live: setup
	@$(COMPILE_KERNELS)
	@PYTHONPATH=. $(BIN)/python benchmarks/live.py --json

# ARGS are those of benchmarks/peers.py: make bench-peers ARGS='--large --keep build/peers'
bench-peers: setup
	@$(COMPILE_KERNELS)
	@PYTHONPATH=. $(BIN)/python benchmarks/peers.py $(ARGS)

# ARGS='--url https://…/v0.1.0 --homepage https://…' for the manifest of krew
release: setup
	@$(BIN)/python scripts/release $(ARGS)

# Apart from the lock of everything else: what builds pages need not run beside the controller.
$(DOCS_STAMP): requirements-docs.lock $(STAMP)
	$(BIN)/pip install --quiet --require-hashes -r requirements-docs.lock
	@touch $@

docs: $(DOCS_STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo 'Open build/site/index.html'

clean:
	rm -rf $(VENV) build dist karpool-demo.html .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
