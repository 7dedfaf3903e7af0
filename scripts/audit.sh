#!/bin/sh
# scripts/audit.sh
# Looks for regular expressions that are not linear, then for known vulnerabilities in the locks.
# A package that the database of vulnerabilities does not know is a failure, not a pass.
set -eu
cd "$(dirname "$0")/.."

python=.venv/bin/python
# Apart from the programs under audit: its own packages must not change theirs.
auditor=.venv-audit/bin/python
failed=0
"$python" -m scripts.redos_lint || failed=1

[ -x "$auditor" ] || "$python" -m venv .venv-audit
"$auditor" -c 'import pip_audit' 2>/dev/null || "$auditor" -m pip install -qq --require-hashes -r requirements/audit.txt
said=$(mktemp)
trap 'rm -f "$said"' EXIT
for lock in requirements/*.txt; do
    is_clean=1
    # Not --strict: it would end at the first unknown package and hide what is found in the others.
    "$auditor" -m pip_audit --disable-pip --require-hashes --progress-spinner off --timeout 15 -r "$lock" >"$said" 2>&1 || is_clean=0
    is_audited=1
    if grep -Eqi 'ConnectionError|ConnectTimeout|NameResolution|Max retries|ProxyError|SSLError|ServiceError|could not be audited|Skip Reason' "$said"; then
        is_audited=0
    fi
    if [ "$is_clean$is_audited" = 11 ]; then
        echo "$lock: no known vulnerability"
        continue
    fi
    failed=1
    cat "$said" >&2
    if [ "$is_audited" = 0 ]; then
        echo "NOT AUDITED: $lock, or packages in it: the database of vulnerabilities cannot be reached or does not know them." >&2
        echo "Run 'make audit' where the network allows it." >&2
    fi
done
exit "$failed"
