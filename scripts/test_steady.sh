#!/usr/bin/env bash
# scripts/test_steady.sh RUNS [pytest arguments]
# Run the whole suite RUNS times while every core is busy; fail if any test fails.
set -euo pipefail
cd "$(dirname "$0")/.."

runs=$1
shift
cores=$(.venv/bin/python -c 'import os; print(os.cpu_count() or 1)')
processes=$((cores * 2 < 8 ? cores * 2 : 8))

# As before `make tests`: tests run a TypeScript worker, and build a wheel with the dashboard.
scripts/sdk_typescript.sh build
scripts/dashboard.sh build

busy=()
stop_busy() { kill "${busy[@]}" 2>/dev/null || true; }
trap stop_busy EXIT
for _ in $(seq "$cores"); do
    # Ends by itself if this script is killed.
    .venv/bin/python -c '
import os
parent = os.getppid()
while os.getppid() == parent:
    sum(range(1_000_000))
' &
    busy+=($!)
done

failures=0
for run in $(seq "$runs"); do
    echo "run $run of $runs"
    .venv/bin/python -m pytest -q --dist loadfile --no-loadscope-reorder -n "$processes" "$@" || failures=$((failures + 1))
done
echo "runs=$runs failures=$failures"
[ "$failures" -eq 0 ]
