# Laneway's tasks. `make` lists them. Each one creates the environment it needs in .venv.
#   PYTHON=python3.12   the interpreter for .venv (default: the first 3.11 or newer on PATH)
#   ARGS="-k fencing"   more arguments for pytest, the benchmarks or the crash suite

.DEFAULT_GOAL := help
RUN := .venv/bin/python -m
# Tests wait more than they compute: run two processes per core, each with a PostgreSQL. More than eight
# slow each other down.
PYTEST := $(RUN) pytest --dist loadfile --no-loadscope-reorder -n $$(.venv/bin/python -c 'import os; print(min(8, 2 * (os.cpu_count() or 1)))')
export PYTHON
# Tests start a thousand programs: keep bytecode, or each would compile all its imports again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help
help: ## List the tasks
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: env-runtime ## Run the demo: embedded PostgreSQL, workers, sample jobs, the dashboard (ONCE=1: run to the end)
	@$(if $(ONCE),,scripts/dashboard.sh try)
	@$(RUN) laneway demo $(if $(ONCE),--once) $(ARGS)

.PHONY: test check
test: env ## Run everything that must pass: lint, types, import contracts, the TypeScript SDK, the dashboard, tests
	@scripts/test_beside.sh
check: test

.PHONY: lint
lint: env ## Check style and likely bugs
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) scripts.word_lint

.PHONY: types
types: env ## Check types of src and tests, strictly
	$(RUN) mypy

.PHONY: imports
imports: env ## Check the import contracts
	@.venv/bin/python -c 'from importlinter.cli import lint_imports_command as main; main()' --no-logo

.PHONY: tests
tests: env ## Run only the tests (ARGS="tests/store -k claim")
	@scripts/dashboard.sh try
	$(PYTEST) $(ARGS)

.PHONY: test-steady
test-steady: env ## Run the tests RUNS=5 times while every core is busy, to find flaky tests
	@scripts/test_steady.sh $(or $(RUNS),5) $(ARGS)

.PHONY: test-pooler
test-pooler: env ## Run the tests that need pgbouncer (installs it)
	@scripts/need_debian.sh pgbouncer pgbouncer
	@$(RUN) pytest -m pooler $(ARGS)

.PHONY: integrations
integrations: env ## Run the example of every integration in its own environment (ARGS="flask": only that one)
	@$(RUN) scripts.integrations $(ARGS)

.PHONY: sdk-typescript
sdk-typescript: env ## Build and test the TypeScript SDK (installs its packages into sdk/typescript)
	@scripts/sdk_typescript.sh test

.PHONY: dashboard
dashboard: env ## Build, check and test the dashboard (installs its packages into dashboard)
	@scripts/dashboard.sh build
	@scripts/dashboard.sh check
	@scripts/dashboard.sh test

.PHONY: test-matrix
test-matrix: env ## Test store, engine and migrations on PostgreSQL 14, 18 and Debian's, and benchmark the latter (installs it; as root)
	@set -e; for major in 14 18; do \
		bin=$$(.venv/bin/python scripts/fetch_postgres.py $$major); \
		LANEWAY_PG_BIN="$$bin" $(PYTEST) tests/store tests/engine tests/migration $(ARGS); \
	done
	@scripts/need_debian.sh postgresql pg_createcluster
	@.venv/bin/python scripts/debian_postgres.py $(PYTEST) tests/store tests/engine tests/migration $(ARGS)
	@.venv/bin/python scripts/debian_postgres.py --measured $(RUN) bench.debian

.PHONY: e2e
e2e: env ## Walk through the dashboard in Chromium, check its screens and measure it (installs it; ARGS=--quick: no measuring)
	@scripts/need_debian.sh chromium chromium
	@scripts/dashboard.sh build
	@$(RUN) tests.e2e.run $(ARGS)

.PHONY: screenshots
screenshots: env ## Take the pictures of README and docs from the demo (installs Chromium)
	@scripts/need_debian.sh chromium chromium
	@scripts/dashboard.sh build
	@$(RUN) tests.e2e.screenshots

.PHONY: examples
examples: env ## Play the stories of the examples, with real programs and kill -9 (ARGS=ai_workbench: only this one)
	@scripts/sdk_typescript.sh build
	@$(RUN) scripts.run_examples $(ARGS)

.PHONY: crash
crash: env ## Kill, stop and disconnect real processes, and count violations (installs pgbouncer and libfaketime)
	@scripts/need_debian.sh pgbouncer pgbouncer
	@scripts/need_debian.sh libfaketime
	@PATH="$$PATH:/usr/sbin" $(RUN) tests.crash.run $(ARGS)

.PHONY: crash-self-test
crash-self-test: env ## Break one rule at a time and check that the crash suite notices
	@scripts/need_debian.sh pgbouncer pgbouncer
	@scripts/need_debian.sh libfaketime
	@PATH="$$PATH:/usr/sbin" $(RUN) tests.crash.run --self-test $(ARGS)

.PHONY: silence
silence: env ## Measure recovery from silent networks, frozen leaders and clock jumps (installs libfaketime)
	@scripts/need_debian.sh libfaketime
	@$(RUN) tests.crash.silence $(ARGS)

.PHONY: upgrade
upgrade: env ## Upgrade every landed schema under load, with old workers running (ARGS=8f14018: only this one)
	@$(RUN) tests.migration.upgrade_all $(ARGS)

.PHONY: doors
doors: env ## Build the site and run its blocks, the examples and the integrations, and check deploy/
	@scripts/doors.sh

.PHONY: deploy-check
deploy-check: env ## Check the Dockerfile, compose file, chart, systemd units and alert rules (installs Go and promtool)
	@scripts/deploy_check.sh

.PHONY: fuzz
fuzz: env ## Send generated requests to every route; figures go to bench/latest (ARGS=100: requests per route)
	@$(RUN) tests.api.fuzz $(ARGS)

.PHONY: abuse
abuse: env ## Replay hostile requests against a real server and measure their cost (ARGS="batch": only those)
	@$(RUN) tests.abuse.run $(ARGS)

.PHONY: audit
audit: env ## Find known vulnerabilities in the locks (needs the network) and non-linear regular expressions
	@scripts/audit.sh

.PHONY: sbom
sbom: env ## Write the software bill of materials (CycloneDX) to dist/laneway.cdx.json
	@$(RUN) scripts.sbom $(ARGS)

.PHONY: bench
bench: env ## Benchmark against PostgreSQL's own limit; figures go to bench/latest
	@$(RUN) bench.run $(ARGS)

.PHONY: bench-api
bench-api: env ## Benchmark the server: submits, streams, status, access (ARGS="post status", ARGS=--quick)
	@$(RUN) bench.api.run $(ARGS)

.PHONY: bench-reads
bench-reads: env ## Benchmark every read with 2,000,000 ended jobs, and list the slowest
	@$(RUN) bench.api.run reads $(ARGS)

.PHONY: bench-rpc
bench-rpc: env ## Benchmark remote workers against workers with a database (ARGS="drain start", ARGS=--quick)
	@$(RUN) bench.rpc.run $(ARGS)

.PHONY: bench-flows
bench-flows: env ## Benchmark flows, sleeps and events, beside plain jobs and pg-boss (ARGS="shapes chain", ARGS=--quick)
	@$(RUN) bench.flows.run $(ARGS)

.PHONY: bench-peers
bench-peers: env ## Benchmark beside other job systems, within an hour (installs them and Redis; FULL=1: all cells, ARGS=--quick)
	@scripts/need_debian.sh redis-server redis-server || true
	@$(RUN) bench.peers.run $(if $(FULL),--full) $(ARGS)

.PHONY: endurance
endurance: env ## Keep a steady load for MINUTES=30, then under a long transaction; find what grows (MINUTES=3: a smoke check)
	@$(RUN) bench.endurance.run $(or $(MINUTES),30)

.PHONY: first-hour
first-hour: env ## Install the core on every Python at hand; measure its size, its start and the planted typing mistakes
	@$(RUN) scripts.first_hour $(ARGS)

.PHONY: size
size: env ## Count the source by room, and check its simplicity
	@$(RUN) scripts.size $(ARGS)

.PHONY: format
format: env ## Format the code
	$(RUN) ruff check --fix-only .
	$(RUN) ruff format .

.PHONY: docs
docs: env ## Generate the documents that come from the code
	@$(RUN) scripts.write_docs

.PHONY: site
site: env ## Build the documentation site in build/site, check its links and run its code blocks (ARGS=--quick: run none)
	@scripts/site.sh $(ARGS)

.PHONY: rpc
rpc: env ## Generate the code from proto/
	.venv/bin/python scripts/write_rpc.py

.PHONY: lock
lock: env ## Update requirements/ (ARGS=--upgrade: take the newest versions)
	@scripts/lock.sh $(ARGS)

.PHONY: env env-runtime
env: ## Create .venv with all tools
	@scripts/env.sh dev
env-runtime:
	@scripts/env.sh runtime

.PHONY: clean
clean: ## Remove .venv, downloads and caches
	rm -rf .venv .venv-audit .venv-deploy .venv-site build .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist
	rm -rf sdk/typescript/node_modules sdk/typescript/dist sdk/typescript/src/_generated
	rm -rf dashboard/node_modules dashboard/dist dashboard/src/api/_generated src/laneway/api/static
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
