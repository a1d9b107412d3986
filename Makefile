# One front door. `make run` and `make test` need Python 3.11+, git and a package index; nothing else.
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 2
ORDER ?= fixed
PYTEST = -m pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder $(if $(filter fixed,$(ORDER)),-p no:randomly)

# Thousands of processes start in a test run; without compiled files each would compile again what it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run test unit-tests process-tests laws mutants matrix score secrets rubric screenshots torture bench examples house lint hooks lock config man clean

help:                        ## list what there is to make
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

run: .venv/.ready            ## set up what is missing, then do the main job once and say where the pages are
	@$(BIN)/python tools/first_run.py

test: .venv/.ready           ## set up what is missing, then run every test (TESTS=tests/unit: some, WORKERS=1: in one process, ORDER=random)
ifdef TESTS
	$(BIN)/python $(PYTEST) $(TESTS)
else
	@echo "Two jobs side by side, for several minutes; each is printed when it has ended."
	@$(MAKE) -k -j2 -Otarget --no-print-directory process-tests unit-tests
endif

# Coverage is measured of the unit tests alone: the others are mostly processes, which measuring would only slow down.
# Those wait a good deal, so they have more workers than there are processors, and the unit tests take what is left.
unit-tests: .venv/.ready
	nice -n 5 $(BIN)/python -m slipcover $(PYTEST) tests/unit

process-tests: WORKERS = 4
process-tests: .venv/.ready
	$(BIN)/python $(PYTEST) tests --ignore=tests/unit

laws: .venv/.ready           ## try six times as many examples in the property tests, new ones in every run; kill at other moments
	$(BIN)/python $(PYTEST) --hypothesis-profile=search $$(grep -rl "import.*given" tests --include="test_*.py") tests/live/test_kill.py

mutants: .venv/.ready        ## break the code in many small ways and check that a test fails each time (ONLY=publish.journal,redact AGAIN=1)
	@$(BIN)/python tools/mutants.py --only "$(ONLY)" $(if $(AGAIN),--again)

matrix: .venv/.ready         ## the main job from the built wheel on every supported Python that is installed (ONLY=newest: one)
	@ONLY=$(ONLY) $(BIN)/python tools/matrix.py

score: .venv/.ready          ## how much of recorded work comes back: exact, refused, wrong
	@$(BIN)/python tools/score.py

secrets: .venv/.ready        ## print what of planted secrets can be read: canaries, frames, ways out, innocent texts
	@$(BIN)/python tools/secrets_matrix.py

rubric: .venv/.ready         ## count the facts of the sample projects that stand on their front pages, also with the scripted model
	@$(BIN)/python tools/rubric.py
	@$(BIN)/python tools/rubric.py --model

screenshots: .venv/.ready    ## photograph the example pages that README shows, with Chromium
	@$(BIN)/python tools/screenshots.py

torture: .venv/.ready        ## harm a running service in every way and check that nothing is lost or wrong (SECONDS=1200 KIND=kill)
	@$(BIN)/python tools/torture.py --seconds $(or $(SECONDS),1200) $(addprefix --kind ,$(KIND))

bench: .venv/.ready          ## measure speed and quality (minutes; see bench/README.md for its options)
	@$(BIN)/python bench/run.py $(BENCH)

examples: .venv/.ready       ## write examples/pages anew: the sample, as a scripted model answers about it
	@$(BIN)/python tools/examples.py

house: .venv/.ready          ## size of the code by room, and how many modules each walk of the data passes
	@$(BIN)/python tools/house.py

lint: .venv/.ready           ## check style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@! git ls-files --cached --ignored --exclude-standard | grep . || { echo "these are ignored, and tracked all the same"; exit 1; }

hooks: .venv/.ready          ## run the checks of `make lint` before every commit (needs pre-commit)
	pre-commit install

config: .venv/.ready         ## regenerate config.example.toml from the schema
	$(BIN)/reconstitute config example > config.example.toml.new && mv config.example.toml.new config.example.toml

man: .venv/.ready            ## regenerate the man pages from the help
	$(BIN)/python -m tools.man

lock: .venv/.ready           ## regenerate requirements.lock 
	$(BIN)/uv pip compile --universal --python-version 3.11 --group dev pyproject.toml --generate-hashes --no-emit-index-url --no-header -q -o requirements.lock

.venv/.ready: requirements.lock pyproject.toml tools/setup.sh
	@PYTHON="$(PYTHON)" sh tools/setup.sh

clean:                       ## remove the environment and all caches
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .cache
