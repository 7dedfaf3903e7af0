#!/usr/bin/env bash
# scripts/test_beside.sh
# Run the tests and the checks concurrently: tests wait more than they compute.
set -uo pipefail
cd "$(dirname "$0")/.."

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
make --no-print-directory --keep-going lint types imports >"$logs/checks" 2>&1 &
checks=$!
# The tests run a TypeScript worker.
if scripts/sdk_typescript.sh build; then
    scripts/sdk_typescript.sh check >"$logs/sdk" 2>&1 &
    sdk=$!
    make --no-print-directory tests
    tests=$?
    wait "$sdk"
    sdk=$?
    cat "$logs/sdk"
else
    tests=1 sdk=1
fi
wait "$checks"
checks=$?
cat "$logs/checks"
exit $((tests != 0 ? tests : sdk != 0 ? sdk : checks))
