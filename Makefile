# Two commands matter: `make run` and `make test`. Both set up everything they need.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SITE := build/documentation/index.html

# Compiled modules are kept, whatever the environment says: without them every process starts a second later.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install run check test test-long test-clean test-cluster test-citus test-packages soak lint compile programs bench demo docs site links
.PHONY: names sdks lock audit sbom release deb clean

help: ## Show what can be made, and what each command installs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "What they install: Python packages go into $(VENV) only, at the versions and hashes in requirements/. System"
	@echo "packages come from apt, as root or with sudo, and only those that are missing:"
	@awk -F '#installs ' '/^#installs / { print "  " $$2 }' $(MAKEFILE_LIST)

install: $(VENV)/run.stamp $(SITE) ## Prepare .venv with the `sapa` command, and the documentation

run: install ## Start everything at http://127.0.0.1:8000 (SAPA_PORT, SAPA_DATA)
	@exec $(BIN)/sapa serve

check: lint ## Check in a minute what can be: style, types, house rules, pure tests, one test of each domain
	$(PYTEST) -n 2 -m 'check and not long'

test: ## Check everything: style, types, house rules, tests, a real browser
	@$(MAKE) --no-print-directory --jobs=3 lint compile programs
	$(PYTEST_ALL)

test-long: lint programs $(VENV)/openapi.stamp $(VENV)/mcp.stamp ## The same with the longest cases, every view of every page and all random examples
	@scripts/need php php-cli
	@scripts/need go golang-go
	@scripts/need pgbouncer pgbouncer
	@scripts/need pgbackrest pgbackrest
	@scripts/need promtool prometheus
	@[ -d /usr/lib/postgresql/15 ] || scripts/need "" postgresql-15
	$(PYTEST_ALL) -m '' --hypothesis-profile=long --timeout=1200

test-cluster: $(VENV)/dev.stamp ## Faults of Patroni, haproxy and hosts under load, in network namespaces (as root; ROUNDS=…)
	@scripts/test-cluster $(abspath $(BIN)) $(ROUNDS)

test-citus: $(VENV)/dev.stamp ## The API, webhooks, messaging and loyalty on a Citus cluster (SAPA_TEST_DATABASE_URL, docs/operations/sharding.md)
	@: $${SAPA_TEST_DATABASE_URL:?is the address of a coordinator, see docs/operations/sharding.md}
	$(PYTEST) -n 2 -m 'not long and not one_server' tests/citus tests/http tests/webhooks tests/messaging tests/loyalty

test-packages: ## Build the Debian package in a minimal Debian; install, start, upgrade and remove it there (as root)
	@scripts/test-clean --only scripts/test-packages

deb: ## Build dist/sapa_….deb for this machine's architecture
	@scripts/build-deb

soak: $(VENV)/dev.stamp ## Ordinary traffic beside attackers for 20 minutes (MINUTES=…), on a machine without other work
	$(BIN)/python -m tests.faults.soak $(MINUTES)

lint: $(VENV)/dev.stamp ## Check style, types and the import contracts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

# Otherwise each process of a run compiles all of them. One core does this while the other checks types.
compile: $(VENV)/dev.stamp ## Import every test once, so that its compiled form is there
	@$(PYTEST) --collect-only --quiet > $(VENV)/collected.txt || { tail -n 60 $(VENV)/collected.txt; exit 1; }

programs: $(VENV)/dev.stamp ## Install the programs that tests need: curl, jq, a browser
	@scripts/need curl curl
	@scripts/need jq jq
	@scripts/browser $(BIN)

test-clean: ## Run `make run` and `make test` in a minimal Debian, built for it and removed again (as root)
	@scripts/test-clean

bench: $(VENV)/dev.stamp ## Measure everything against bare yardsticks, in ratios (docs/performance.md)
	@scripts/need wrk wrk
	$(BIN)/python -m bench

demo: install ## Fill the demo company's test environment: a shop with customers, products and orders
	$(BIN)/sapa demo

docs: $(VENV)/dev.stamp ## Redraw docs/architecture.svg, and write docs/errors.md anew
	$(BIN)/python scripts/draw_rooms
	$(BIN)/python -m docs.generator.errors

site: $(VENV)/dev.stamp ## Build the documentation that the server shows at /docs; a broken link is an error
	@scripts/build-docs $(BIN) --strict

links: $(VENV)/dev.stamp ## Try the links of the documentation that lead to other sites (asks them)
	$(BIN)/python -m docs.generator build/links --check-links

names: $(VENV)/dev.stamp ## Renew tests/house/public_names.txt, the names that callers and operators rely on
	$(BIN)/python -m tests.house.public_names

sdks: $(VENV)/dev.stamp ## Write the SDKs anew from the declared endpoints (sdk/)
	$(BIN)/python -m sdk.generator

lock: $(VENV)/dev.stamp ## Renew the locked requirements
	$(BIN)/uv pip compile pyproject.toml -q -U --extra install $(LOCKING) -o requirements/run.txt
	$(BIN)/uv pip compile pyproject.toml -q -U --extra install --extra dev requirements/site.in -c requirements/run.txt $(LOCKING) -o requirements/dev.txt
	$(BIN)/uv pip compile requirements/site.in -q -U -c requirements/dev.txt $(LOCKING) -o requirements/site.txt
	$(BIN)/uv pip compile requirements/openapi/requirements.in -q -U $(LOCKING) -o requirements/openapi/requirements.txt
	$(BIN)/uv pip compile requirements/mcp/requirements.in -q -U $(LOCKING) -o requirements/mcp/requirements.txt
	@scripts/test-tools openapi $(PYTHON) $(VENV)/openapi lock
	@scripts/test-tools mcp $(PYTHON) $(VENV)/mcp lock

audit: $(VENV)/dev.stamp ## Look for known vulnerabilities in the locked requirements (asks a public database)
	$(BIN)/pip-audit --strict --disable-pip --require-hashes -r requirements/run.txt
	$(BIN)/pip-audit --strict --disable-pip --require-hashes -r requirements/dev.txt

sbom: $(VENV)/dev.stamp ## Write sbom.json, what an installation consists of, as CycloneDX
	$(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --of JSON -o sbom.json requirements/run.txt

release: $(VENV)/dev.stamp $(VENV)/openapi.stamp ## Build dist/: wheel, SDKs, documentation, list of components, checksums
	@scripts/release $(abspath $(BIN)) $(abspath $(VENV)/openapi)

clean: ## Remove .venv, caches and what was built; the data folder stays
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis bench/out sbom.json build dist

#installs install, run, demo      requirements/run.txt, about 215 MB; requirements/site.txt, until the documentation is built;
#installs                         python3-venv
#installs test, test-long         requirements/dev.txt, about 860 MB; python3-venv, curl, jq, chromium,
#installs                         chromium-headless-shell, libatomic1
#installs test-long               requirements/openapi and requirements/mcp, about 950 MB: Node, Deno, Bun and npm packages, Kapso's
#installs                         client among them; php-cli, golang-go, pgbouncer, pgbackrest,
#installs                         prometheus, postgresql-15
#installs check                   requirements/dev.txt; python3-venv, curl
#installs test-clean              debootstrap, and what run and test install, within the system that it removes
#installs test-cluster            requirements/dev.txt; python3-venv, postgresql-15, patroni, etcd-server, haproxy, iproute2
#installs test-citus              requirements/dev.txt; python3-venv; the cluster is yours
#installs test-packages           debootstrap, and within the system that it removes: python3-venv and the package itself
#installs deb                     nothing; the packages of requirements/run.txt go into the .deb
#installs soak                    requirements/dev.txt; python3-venv
#installs bench                   requirements/dev.txt; python3-venv, wrk
#installs docs, names, sdks, lock requirements/dev.txt; python3-venv
#installs site, links             requirements/dev.txt; python3-venv
#installs audit, sbom             requirements/dev.txt; python3-venv
#installs release                 requirements/dev.txt, requirements/openapi; python3-venv

PYTEST := $(BIN)/pytest --dist loadfile --no-loadscope-reorder
# Four processes more than the two cores: tests often wait for a worker's next step or a provider's timeout.
PYTEST_ALL := $(PYTEST) -n 6
MINUTES := 20
ROUNDS := 3
LOCKING := --universal --python-version 3.11 --generate-hashes --no-header --no-annotate

$(VENV)/bin/pip:
	@scripts/venv $(PYTHON) $(VENV)

$(VENV)/run.stamp: requirements/run.txt pyproject.toml | $(VENV)/bin/pip
	$(BIN)/pip install --quiet --require-hashes -r requirements/run.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# Not an error: the server works without it, and says so at /docs.
$(SITE): $(wildcard *.md docs/*.md docs/*/*.md docs/generator/*.py docs/generator/theme/*) | $(VENV)/run.stamp
	@scripts/build-docs $(BIN) || echo "The documentation was not built. To see why, and to try again: make site" >&2

# What run.stamp stands for is installed with it.
$(VENV)/dev.stamp: requirements/dev.txt requirements/run.txt pyproject.toml | $(VENV)/bin/pip
	@scripts/install-locked $(BIN) requirements/dev.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $(VENV)/run.stamp $@

$(VENV)/openapi.stamp: $(wildcard requirements/openapi/*) | $(VENV)/dev.stamp
	@scripts/test-tools openapi $(PYTHON) $(VENV)/openapi
	@touch $@

$(VENV)/mcp.stamp: $(wildcard requirements/mcp/*) | $(VENV)/dev.stamp
	@scripts/test-tools mcp $(PYTHON) $(VENV)/mcp
	@touch $@
