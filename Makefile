# The verbs of the project. `make` alone prints them.
PYTHON ?= python3
UV_VERSION := 0.13.8
ROOMS := contract manifests broker shim operator agent tools cli
IMAGES := agent shim operator tools
REGISTRY ?= dev.local
TAG ?= 0.1.0
BIN := .venv/bin
UV := .uv/bin/uv

.DEFAULT_GOAL := help
.PHONY: help setup run ask test test-clients fuzz check fix docs lock bench bench-agent bench-cluster images cluster cluster-down test-cluster clean

help: ## Show the verbs
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo '  After `make setup`, `.venv/bin/beckon --help` teaches the command line.'

setup: .venv/ready ## Make the private environment in .venv from the locked dependencies

run: .venv/ready ## Start the local platform: broker, shim, agent, tools (Ctrl-C stops all)
	@exec $(BIN)/beckon up

ask: export QUESTION := $(value Q)
ask: .venv/ready ## Ask one question: make ask Q="What is 17% of 2340?"
	@test -n "$$QUESTION" || { echo 'make ask: no question; write make ask Q="What is 17% of 2340?"' >&2; exit 2; }
	@exec $(BIN)/beckon ask -- "$$QUESTION"

test: check ## Style, strict types, layer rules, and every test that needs no cluster
	$(BIN)/pytest -n 2 --dist worksteal

test-clients: .venv/ready ## Clients as they are published: openai for Node, LangChain, llm; MCP's conformance suite
	sh tests/clients/clients.sh
	sh tests/agent/mcp/conformance.sh

EXAMPLES ?= 300
fuzz: .venv/ready ## Try the OpenAPI description with so many requests an operation: make fuzz EXAMPLES=300
	FUZZ_EXAMPLES=$(EXAMPLES) $(BIN)/pytest tests/e2e/test_openapi.py

check: .venv/ready ## Style, strict types, layer rules, dependencies, spelling
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(foreach room,$(ROOMS),$(room)/beckon_$(room)) tests bench charts/generate.py docs/settings_page.py
	$(BIN)/lint-imports --no-logo
	@for room in $(ROOMS); do (cd $$room && ../$(BIN)/deptry .) || exit 1; done
	$(BIN)/codespell $(ROOMS) bench docs deploy charts *.md Makefile pyproject.toml
	$(BIN)/yamllint --strict deploy charts/beckon/Chart.yaml charts/beckon/values.yaml charts/beckon/crds

fix: .venv/ready ## Format, and mend what ruff can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: .venv/ready ## Make the pages that are made from the code
	$(BIN)/python docs/settings_page.py > docs/settings.md
	cp deploy/20?-crd-*.yaml charts/beckon/crds/
	$(BIN)/python charts/generate.py

bench: .venv/ready ## Measure the shim beside a bare-ASGI echo
	$(BIN)/python -m bench.shim

bench-agent: .venv/ready ## Measure the agent beside Pydantic AI, OpenAI Agents, LangChain and a bare loop
	$(BIN)/python -m bench.agent

bench-cluster: .venv/ready ## Measure on the cluster: beside Knative's RequestReply, and the catalogue
	$(BIN)/python -m bench.requestreply
	$(BIN)/python -m bench.catalog

images: ## Build the container images: make images REGISTRY=registry.example/team TAG=0.1.0
	@builder="$${BUILDER:-$$(for one in docker podman buildah; do $$one info >/dev/null 2>&1 && echo $$one && break; done)}"; \
	test -n "$$builder" || { echo 'make images: docker, podman and buildah are missing or do not run; start one, or name it with BUILDER=' >&2; exit 2; }; \
	for image in $(IMAGES); do \
		echo "$$builder builds $(REGISTRY)/beckon-$$image:$(TAG)"; \
		$$builder build --target $$image --tag $(REGISTRY)/beckon-$$image:$(TAG) --build-arg VERSION=$(TAG) \
			$(if $(BASE),--build-arg BASE=$(BASE)) $(BUILD_OPTIONS) . || exit; \
	done

EXPORT := $(UV) export --frozen --no-emit-workspace --no-header --no-annotate -q
lock: $(UV) ## Resolve the dependencies anew: requirements.lock, and what each image holds of it
	$(UV) lock --upgrade
	$(EXPORT) --all-packages --all-groups -o requirements.lock
	$(EXPORT) --only-group build -o requirements-build.lock
	$(foreach image,$(IMAGES),$(EXPORT) --package beckon-$(image) --no-dev -o $(image)/requirements.lock &&) true

cluster: .venv/ready ## Start a real single-node Kubernetes with Knative on this Debian machine (root, Go)
	@exec $(BIN)/python -m tests.cluster.machine up

cluster-down: .venv/ready ## Remove every trace of that cluster but the built programs
	@exec $(BIN)/python -m tests.cluster.machine down

test-cluster: .venv/ready ## Every test on a real Kubernetes: that of KUBECONFIG, or one started for it
	$(BIN)/python -m tests.cluster

clean: ## Remove the environments and every cache
	rm -rf .venv .uv .mypy_cache .ruff_cache .pytest_cache .hypothesis .schemathesis .import_linter_cache uv.lock

$(UV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo 'Beckon needs Python 3.11 or later; name one with: make PYTHON=/path/to/python3.11' >&2; exit 2; }
	@$(PYTHON) -m venv .uv >/dev/null || { rm -rf .uv; \
		echo 'Python cannot make a virtual environment; on Debian: apt-get install python3-venv' >&2; exit 2; }
	@.uv/bin/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

.venv/ready: $(UV) requirements.lock pyproject.toml $(ROOMS:%=%/pyproject.toml)
	@echo 'Setting up .venv …'
	@test -x $(BIN)/python || $(UV) venv --quiet --no-config --python $$(command -v $(PYTHON)) .venv
	@$(UV) pip sync --quiet --python $(BIN)/python --require-hashes requirements.lock
	@$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation $(ROOMS:%=-e ./%)
	@touch $@
