#!/bin/sh
# scripts/doors.sh
# Build the site and run its blocks, the examples, the integrations and the checks of deploy/; print all figures.
set -eu
cd "$(dirname "$0")/.."

output=$(mktemp)
trap 'rm -f "$output"' EXIT
failed=''
for target in site examples integrations deploy-check; do
    echo "make $target"
    # The status of make, not of tee.
    { { make --no-print-directory "$target" 2>&1; echo "exit $?"; } | tee -a "$output"; } || true
    tail -n 1 "$output" | grep -qx 'exit 0' || failed="$failed $target"
done
echo
grep -E '^\[(docs_snippets_run|docs_snippets_skipped|links_broken|examples_run|integrations_run|deploy_files_checked)\]' "$output" || true
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
