#!/bin/sh
# scripts/deploy_check.sh
# Check the files in deploy/ with the tools of those who will read them.
set -eu
cd "$(dirname "$0")/.."

for each in "golang-go go" golang-github-masterminds-sprig-dev golang-k8s-sigs-yaml-dev \
    "prometheus promtool" "systemd systemd-analyze"; do
    # shellcheck disable=SC2086
    scripts/need_debian.sh $each
done
# In a separate environment: the checkers' packages must not change the development ones.
python=.venv-deploy/bin/python
[ -x "$python" ] || .venv/bin/python -m venv .venv-deploy
"$python" -c 'import kubernetes_validate, compose' 2>/dev/null ||
    for lock in deploy deploy-compose; do
        "$python" -m pip install -qq --no-deps --require-hashes -r "requirements/$lock.txt"
    done
mkdir -p .cache
# Debian's Go libraries are sources in a GOPATH.
GO111MODULE=off GOFLAGS='' GOPATH=/usr/share/gocode GOCACHE="$PWD/.cache/go" \
    go build -o .cache/render_chart ./scripts/render_chart
exec "$python" scripts/deploy_check.py
