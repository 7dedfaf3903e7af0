#!/bin/sh
# scripts/audit.sh
# Looks for regular expressions that are not linear, then for known vulnerabilities in the locks.
# Without its database nothing is known of those: that is a failure, not a pass.
set -eu
cd "$(dirname "$0")/.."

python=.venv/bin/python
failed=0
"$python" -m scripts.redos_lint || failed=1

"$python" -c 'import pip_audit' 2>/dev/null || "$python" -m pip install -qq --require-hashes -r requirements/audit.txt
said=$(mktemp)
trap 'rm -f "$said"' EXIT
for lock in requirements/*.txt; do
    if "$python" -m pip_audit --strict --disable-pip --require-hashes --progress-spinner off --timeout 15 -r "$lock" >"$said" 2>&1; then
        echo "$lock: no known vulnerability"
        continue
    fi
    failed=1
    if grep -Eqi 'ConnectionError|ConnectTimeout|NameResolution|Max retries|ProxyError|SSLError|ServiceError|could not be audited' "$said"; then
        echo "NOT AUDITED: the database of vulnerabilities cannot be reached or does not know the packages." >&2
        echo "Run 'make audit' where the network allows it." >&2
        break
    fi
    cat "$said" >&2
done
exit "$failed"
