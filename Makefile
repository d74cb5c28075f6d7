# Two commands: `make lab` to learn, `make test` to check. Both prepare .venv by themselves.
#
#   make lab LAB_ARGS="--no-browser --port 8899"     flags for JupyterLab
#   make lab LAB_ARGS="--again 4"                    chapter 04 from its beginning; yours is kept
#   make lab PIP_ARGS="--extra-index-url ADDRESS"    flags for pip (see README, "Smaller download")

# In what `make room` packs: which Python, and where its packages are.
-include room.mk
PYTHON ?= python3
PIP_ARGS ?=
LAB_ARGS ?=
BIN := .venv/bin
# Half of pip's time would go into compiling what is never imported: Python compiles what is, once.
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile \
        -c tools/constraints.txt $(PIP_ARGS)
unexport PYTHONDONTWRITEBYTECODE
# mwparserfromhell has no build for Python 3.14 yet: where there is no compiler, pip leaves out its
# part in C, and the articles are made by the part in Python, more slowly, the same.
export WITH_EXTENSION ?= optional

NBVAL = --nbval --nbval-current-env --nbval-sanitize-with notebooks/nbval.cfg \
        --nbval-cell-timeout 900 -n 2 --dist loadscope --no-loadscope-reorder
# The longest chapters are among the last: they begin first, so that both workers end together.
CHAPTERS = $(shell ls -r notebooks/*.ipynb)
# Chapters are compared under a clock that jumps, so that none can hang on a time that it measures.
NBTEST = PYTHONPATH=$(CURDIR)/tests/clock $(BIN)/pytest -q $(NBVAL)

# PyTorch chooses its kernels by what the processor can; each choice rounds differently.
KERNELS = default avx2 $(if $(shell grep -m 1 -s avx512f /proc/cpuinfo),avx512)

.PHONY: help lab test lint types javascript texts unit chapters test-browser test-matrix notebooks normalise bench data train \
	study book room constraints clean teach

help:
	@echo "make lab           open the course in JupyterLab, in your own copies (my/)"
	@echo "make test          lint, types, unit tests, notebook hygiene, every chapter compared with its outputs"
	@echo "make test-browser  every explorer, and every chapter's outputs, in JupyterLab in Chromium"
	@echo "make test-matrix   every chapter compared with 1 and 2 threads and each set of CPU kernels"
	@echo "make notebooks     run every chapter in place, and write what README and docs/teaching repeat"
	@echo "make teach         install what tools/teach.py needs: assignments, grades, slides, questions"
	@echo "make book          the course as web pages, in build/book"
	@echo "make room          one archive for a room without internet: course, packages, data"
	@echo "make bench         measure the chapters"
	@echo "make data          rebuild and verify the files under data/"
	@echo "make study NAME=…  run a study again"
	@echo "make train         train the shipped models again"
	@echo "make clean         remove what these commands made (not the data cache)"

# In a container you are often root, and JupyterLab then wants to be told that you know.
ROOT_ARGS = $(if $(filter 0,$(shell id -u)),--allow-root)
lab: .venv/course
	$(BIN)/python tools/learn.py $(ROOT_ARGS) $(LAB_ARGS)

# Tests run side by side: more threads than cores would make them all crawl.
test test-browser unit chapters: export OMP_NUM_THREADS ?= 1

test: lint unit chapters

# Types take longest: what reads the JavaScript and the texts runs beside them.
lint: .venv/dev
	@$(MAKE) -j 2 types javascript texts

types: .venv/dev
	$(BIN)/mypy

texts: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell *.md docs data/*.md data/*.py exercises explorers helpers \
		notebooks/*.ipynb studies/*.py tests tools Makefile --skip "*/node_modules"
	$(BIN)/python tools/notebooks.py check

# Prettier and TypeScript read the JavaScript; none of npm's packages reaches a learner.
javascript:
	@if command -v npm >/dev/null && $(MAKE) --silent explorers/node_modules/.package-lock.json; then npm --prefix explorers run --silent check; \
	else echo "npm, or what it installs, is not here: JavaScript was not checked."; test -z "$$GITHUB_ACTIONS"; fi

explorers/node_modules/.package-lock.json: explorers/package-lock.json
	@npm --prefix explorers ci --silent --no-audit --no-fund --fetch-retries=1 --fetch-timeout=30000
	@touch $@

unit: .venv/dev
	$(BIN)/pytest -q -n 2

chapters: .venv/dev
	$(NBTEST) $(CHAPTERS)

# A busy machine can be late with a page. What fails twice fails; what fails once is listed.
test-browser: .venv/dev
	$(BIN)/pytest -q -n 2 --dist loadfile --reruns 1 -rR tests/browser

test-matrix: .venv/dev
	@for threads in 1 2; do for kernels in $(KERNELS); do \
		echo "== $$threads thread(s), $$kernels kernels"; \
		OMP_NUM_THREADS=$$threads ATEN_CPU_CAPABILITY=$$kernels \
			$(NBTEST) -n $$((2 / threads)) $(CHAPTERS) || failed=1; \
	done; done; test -z "$$failed"

notebooks: .venv/dev
	$(BIN)/python tools/notebooks.py run
	$(BIN)/python tools/repeated.py

normalise: .venv/dev
	$(BIN)/python tools/notebooks.py normalise

bench: .venv/dev
	$(BIN)/python tools/benchmarks/chapters.py

data: .venv/dev
	$(BIN)/python data/build.py --verify

train: .venv/course
	$(BIN)/python tools/shipped.py shakespeare-gpt
	$(BIN)/python tools/shipped.py gptmini

study: .venv/course
	$(if $(NAME),,$(error which one? make study NAME=…; they are in studies/))
	$(BIN)/python -m studies $(NAME)

book: .venv/dev
	$(BIN)/python tools/book/book.py

teach: .venv/teach
	@echo "Ready: $(BIN)/python tools/teach.py --help, and docs/TEACHING.md"

# The archive is for machines with this system and this Python. It holds what is committed.
ROOM := dot-product-to-gpt
room: .venv/course
	rm -rf build/$(ROOM)
	mkdir -p build/$(ROOM)/data/cache
	git archive HEAD | tar -x -C build/$(ROOM)
	git status --short
	cp $$($(BIN)/python data/build.py --fetch | sed 's/^ready *//') build/$(ROOM)/data/cache
	sed '/^-[er]/d' requirements.txt tools/requirements-teach.txt > build/room.txt
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check -c tools/constraints.txt $(PIP_ARGS) \
		-r build/room.txt setuptools --wheel-dir build/$(ROOM)/wheels
	ls build/$(ROOM)/wheels | sed -E 's/^([^-]+)-([^-]+)-.*/\1==\2/' > build/$(ROOM)/tools/constraints.txt
	@{ echo "PYTHON := $$($(BIN)/python -c 'import sys; print("python%d.%d" % sys.version_info[:2])')"; \
		echo "PIP_ARGS := --no-index --find-links wheels"; } > build/$(ROOM)/room.mk
	cd build && ../$(BIN)/python -m zipfile -c $(ROOM).zip $(ROOM)
	@echo "build/$(ROOM).zip: unpack it, and run make lab in its folder."

# Resolve again for every platform and Python after changing a file of requirements.
constraints: .venv/dev
	$(INSTALL) uv==0.13.8
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate \
		--no-emit-package dot-product-to-gpt tools/requirements-dev.txt --output-file tools/constraints.txt
	@{ echo '# The full resolved set for every platform, made by `make constraints`; pip reads it as -c.'; \
		cat tools/constraints.txt; } > constraints.new && mv constraints.new tools/constraints.txt

clean:
	rm -rf build .venv explorers/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis test-results *.egg-info
	find helpers exercises explorers studies tests tools -name __pycache__ -type d -prune -exec rm -rf {} +

# The marks are written last: an installation that was interrupted is taken up again.
.venv/course: requirements.txt tools/constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; (3, 11) <= v < (3, 15) or sys.exit("The course needs Python 3.11, 3.12, 3.13 or 3.14, for which PyTorch 2.13 is built, but $(PYTHON) is %d.%d. Name another one: make lab PYTHON=python3.12" % v[:2])'
	@$(PYTHON) -c 'import platform, sys; mac, chip = platform.mac_ver()[0], platform.machine(); mac and (chip != "arm64" or int(mac.split(".")[0]) < 14) and sys.exit("PyTorch 2.13, which the course needs, is built for Macs with an Apple processor and macOS 14 or newer only; here $(PYTHON) finds macOS %s on %s." % (mac, chip))'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing the course into .venv (some minutes the first time) ..."
	@$(INSTALL) -r requirements.txt || { echo "The installation failed, see above. If an earlier one was" \
		"interrupted, remove what it left behind with make clean, and try again."; exit 1; }
	@touch $@

.venv/teach .venv/dev: .venv/%: .venv/course tools/requirements-teach.txt tools/requirements-%.txt
	@$(INSTALL) -r tools/requirements-$*.txt
	@touch $@
