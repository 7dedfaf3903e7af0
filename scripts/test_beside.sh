#!/usr/bin/env bash
# scripts/test_beside.sh
# Run the tests and the checks concurrently: tests wait more than they compute.
set -uo pipefail
cd "$(dirname "$0")/.."

# The tests run a TypeScript worker.
scripts/sdk_typescript.sh build || exit

checked=$(mktemp)
trap 'rm -f "$checked"' EXIT
{
    make --no-print-directory --keep-going lint types imports
    checks=$?
    scripts/sdk_typescript.sh check && exit "$checks"
} >"$checked" 2>&1 &
checks=$!
make --no-print-directory tests
tests=$?
wait "$checks"
checks=$?
cat "$checked"
exit $((tests != 0 ? tests : checks))
