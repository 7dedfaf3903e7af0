#!/usr/bin/env bash
# scripts/test_beside.sh
# Run the tests and the checks concurrently: tests wait more than they compute.
set -uo pipefail
cd "$(dirname "$0")/.."

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
beside=() status=0

# run NAME COMMAND...: start a command; `finish` waits for all and prints what each wrote.
run() {
    local name=$1
    shift
    "$@" >"$logs/$name" 2>&1 &
    beside+=("$name:$!")
}
finish() {
    local one failed
    for one in "${beside[@]}"; do
        wait "${one#*:}"
        failed=$?
        cat "$logs/${one%:*}"
        [ "$failed" -eq 0 ] || status=$failed
    done
}
dashboard() { scripts/dashboard.sh check && scripts/dashboard.sh test; }

run checks make --no-print-directory --keep-going lint types imports
# The tests run a TypeScript worker, and build a wheel with the dashboard.
if scripts/sdk_typescript.sh build && scripts/dashboard.sh build; then
    run sdk scripts/sdk_typescript.sh check
    run dashboard dashboard
    make --no-print-directory tests
    status=$?
else
    status=1
fi
finish
exit "$status"
