#!/bin/sh
# scripts/site.sh [--quick] [pytest options]
# Build the documentation site and check it. The builder has its own environment: no other task needs it.
set -eu
cd "$(dirname "$0")/.."

python=.venv/bin/python
stamp=.venv-site/.stamp
print=$(cksum <requirements/site.txt)
if ! [ "$(cat "$stamp" 2>/dev/null)" = "$print" ]; then
    echo "Installing requirements/site.txt into .venv-site"
    "$python" -m venv --clear .venv-site
    .venv-site/bin/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements/site.txt
    echo "$print" >"$stamp"
fi
exec "$python" -m scripts.site "$@"
