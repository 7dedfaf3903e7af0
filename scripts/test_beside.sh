#!/usr/bin/env bash
# scripts/test_beside.sh
# Runs the tests, and types and import contracts at the same time: tests wait more than they compute.
set -uo pipefail
cd "$(dirname "$0")/.."

checked=$(mktemp)
trap 'rm -f "$checked"' EXIT
make --no-print-directory types imports >"$checked" 2>&1 &
checks=$!
make --no-print-directory tests
tests=$?
wait "$checks"
checks=$?
cat "$checked"
exit $((tests != 0 ? tests : checks))
