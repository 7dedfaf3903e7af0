# Laneway's tasks. `make` lists them. Each one makes the environment it needs in .venv.
#   PYTHON=python3.12   the interpreter for .venv (default: the first 3.11 or newer on PATH)
#   ARGS="-k fencing"   more arguments for pytest, the benchmarks or the crash suite

.DEFAULT_GOAL := help
RUN := .venv/bin/python -m
# Tests wait more than they work: twice as many processes as cores, and a PostgreSQL for each; more than
# eight only get in each other's way.
PYTEST := $(RUN) pytest --dist loadfile --no-loadscope-reorder -n $$(.venv/bin/python -c 'import os; print(min(8, 2 * (os.cpu_count() or 1)))')
export PYTHON
# Tests start a thousand programs; without this each might compile anew all that it imports.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help
help: ## List the tasks
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: env-runtime ## See it work: embedded PostgreSQL, a worker and a sample workload (ONCE=1: run to the end)
	@$(RUN) laneway demo $(if $(ONCE),--once)

.PHONY: test check
test: env ## Everything that must pass: lint, types, import contracts, the TypeScript SDK, tests
	@scripts/test_beside.sh
check: test

.PHONY: lint
lint: env ## Style and likely bugs
	$(RUN) ruff check .
	$(RUN) ruff format --check .

.PHONY: types
types: env ## Types of src and tests, strictly
	$(RUN) mypy

.PHONY: imports
imports: env ## Who may import whom
	@.venv/bin/python -c 'from importlinter.cli import lint_imports_command as main; main()' --no-logo

.PHONY: tests
tests: env ## The tests alone (ARGS="tests/store -k claim")
	$(PYTEST) $(ARGS)

.PHONY: test-steady
test-steady: env ## The tests, RUNS=5 times beside processes that keep every core busy: a failure is a flaky test
	@scripts/test_steady.sh $(or $(RUNS),5) $(ARGS)

.PHONY: test-pooler
test-pooler: env ## The tests that need pgbouncer (installs it)
	@scripts/need_debian.sh pgbouncer pgbouncer
	@$(RUN) pytest -m pooler $(ARGS)

.PHONY: sdk-typescript
sdk-typescript: env ## Build and test the TypeScript SDK (installs its packages into sdk/typescript)
	@scripts/sdk_typescript.sh test

.PHONY: test-matrix
test-matrix: env ## Store, engine and migration tests on PostgreSQL 14, 18 and Debian's own, with its figures (installs it; as root)
	@set -e; for major in 14 18; do \
		bin=$$(.venv/bin/python scripts/fetch_postgres.py $$major); \
		LANEWAY_PG_BIN="$$bin" $(PYTEST) tests/store tests/engine tests/migration $(ARGS); \
	done
	@scripts/need_debian.sh postgresql pg_createcluster
	@.venv/bin/python scripts/debian_postgres.py $(PYTEST) tests/store tests/engine tests/migration $(ARGS)
	@.venv/bin/python scripts/debian_postgres.py --measured $(RUN) bench.debian

.PHONY: crash
crash: env ## Kill, stop and cut off real processes, and count what went wrong (installs pgbouncer and libfaketime)
	@scripts/need_debian.sh pgbouncer pgbouncer
	@scripts/need_debian.sh libfaketime
	@PATH="$$PATH:/usr/sbin" $(RUN) tests.crash.run $(ARGS)

.PHONY: crash-self-test
crash-self-test: env ## Break one law at a time, and see that the crash suite notices
	@scripts/need_debian.sh pgbouncer pgbouncer
	@scripts/need_debian.sh libfaketime
	@PATH="$$PATH:/usr/sbin" $(RUN) tests.crash.run --self-test $(ARGS)

.PHONY: silence
silence: env ## Silent networks, frozen leaders, clocks that jump: how long until work goes on (installs libfaketime)
	@scripts/need_debian.sh libfaketime
	@$(RUN) tests.crash.silence $(ARGS)

.PHONY: upgrade
upgrade: env ## Walk every landed schema to now, under load and beside old workers (ARGS=8f14018: from this one)
	@$(RUN) tests.migration.walk $(ARGS)

.PHONY: fuzz
fuzz: env ## Made-up requests at every route of the API; figures go to bench/latest (ARGS=100: so many each)
	@$(RUN) tests.api.fuzz $(ARGS)

.PHONY: abuse
abuse: env ## Replay hostile requests against a real server, and measure what each costs others (ARGS="batch": those)
	@$(RUN) tests.abuse.run $(ARGS)

.PHONY: audit
audit: env ## Known vulnerabilities in the locks (needs the network), regular expressions that are not linear
	@scripts/audit.sh

.PHONY: sbom
sbom: env ## Write the bill of materials (CycloneDX) of the locks to dist/laneway.cdx.json
	@$(RUN) scripts.sbom $(ARGS)

.PHONY: bench
bench: env ## Measure beside PostgreSQL's own limit; figures go to bench/latest
	@$(RUN) bench.run $(ARGS)

.PHONY: bench-api
bench-api: env ## Measure the server: submits, streams, status, access (ARGS="post status", ARGS=--quick)
	@$(RUN) bench.api.run $(ARGS)

.PHONY: bench-reads
bench-reads: env ## Every read of every door beside 2,000,000 ended jobs: the slowest ones
	@$(RUN) bench.api.run reads $(ARGS)

.PHONY: bench-rpc
bench-rpc: env ## Measure remote workers beside those with a database (ARGS="drain start", ARGS=--quick)
	@$(RUN) bench.rpc.run $(ARGS)

.PHONY: size
size: env ## How large the source is, and how plain
	@$(RUN) scripts.size $(ARGS)

.PHONY: format
format: env ## Rewrite the code in the house style
	$(RUN) ruff check --fix-only .
	$(RUN) ruff format .

.PHONY: docs
docs: env ## Write the documents that are drawn from the code
	.venv/bin/python scripts/write_docs.py

.PHONY: rpc
rpc: env ## Write the code that is made from proto/
	.venv/bin/python scripts/write_rpc.py

.PHONY: lock
lock: env ## Renew requirements/ (ARGS=--upgrade: take the newest of everything)
	@scripts/lock.sh $(ARGS)

.PHONY: env env-runtime
env: ## Make .venv with all tools
	@scripts/env.sh dev
env-runtime:
	@scripts/env.sh runtime

.PHONY: clean
clean: ## Remove .venv, downloads and caches
	rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist
	rm -rf sdk/typescript/node_modules sdk/typescript/dist sdk/typescript/src/_generated
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
