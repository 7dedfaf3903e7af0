#!/bin/sh
# scripts/audit.sh
# Find non-linear regular expressions, then known vulnerabilities in the locks.
# A package that the vulnerability database does not know is a failure.
set -eu
cd "$(dirname "$0")/.."

python=.venv/bin/python
# In a separate environment: the auditor's packages must not change the audited ones.
auditor=.venv-audit/bin/python
failed=0
"$python" -m scripts.redos_lint || failed=1

[ -x "$auditor" ] || "$python" -m venv .venv-audit
"$auditor" -c 'import pip_audit' 2>/dev/null || "$auditor" -m pip install -qq --require-hashes -r requirements/audit.txt
output=$(mktemp)
trap 'rm -f "$output"' EXIT
for lock in requirements/*.txt requirements/integrations/*.txt; do
    [ -f "$lock" ] || continue
    is_clean=1
    # Not --strict: it would stop at the first unknown package and hide later findings.
    "$auditor" -m pip_audit --disable-pip --require-hashes --progress-spinner off --timeout 15 -r "$lock" >"$output" 2>&1 || is_clean=0
    is_audited=1
    if grep -Eqi 'ConnectionError|ConnectTimeout|NameResolution|Max retries|ProxyError|SSLError|ServiceError|could not be audited|Skip Reason' "$output"; then
        is_audited=0
    fi
    if [ "$is_clean$is_audited" = 11 ]; then
        echo "$lock: no known vulnerability"
        continue
    fi
    failed=1
    cat "$output" >&2
    if [ "$is_audited" = 0 ]; then
        echo "NOT AUDITED: $lock, or packages in it: the vulnerability database is unreachable or does not know them." >&2
        echo "Run 'make audit' where the network allows it." >&2
    fi
done
exit "$failed"
