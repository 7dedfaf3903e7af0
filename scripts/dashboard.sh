#!/bin/sh
# scripts/dashboard.sh build|check|test|try
# build   build dashboard/ into src/laneway/api/static; does nothing if that is current
# check   check types and style
# test    run its tests
# try     build unless LANEWAY_SKIP_WEB=1; if that fails, say so in one line and succeed
# Installs the packages when they have changed. BUILD_PYTHON names an interpreter other than that of .venv.
set -eu
cd "$(dirname "$0")/../dashboard"

python=${BUILD_PYTHON:-../.venv/bin/python}
static=../src/laneway/api/static
schema=src/api/_generated/schema.ts
stamp=node_modules/.stamp-bundle
. ../scripts/node.sh

prepare() {
    need_node 22
    install_packages dashboard
    for source in ../docs/reference/openapi.json node_modules/.stamp; do
        [ "$schema" -nt $source ] || { npm run --silent generate >/dev/null && break; }
    done
}

# The checksum of everything that the bundle is made of.
sources() {
    find . \( -path ./node_modules -o -path ./dist -o -path ./src/api/_generated \) -prune \
        -o -type f ! -name '*.test.*' -print0 | LC_ALL=C sort -z |
        xargs -0 cksum ../docs/reference/openapi.json ../scripts/dashboard.sh ../scripts/compress.py | cksum
}

build() {
    now=$(sources)
    [ -f $static/index.html ] && [ "$(cat $stamp 2>/dev/null)" = "$now" ] && return
    prepare
    echo "Building the dashboard"
    # Its own folder: two builds at once would empty each other's.
    built=node_modules/.bundle-$$
    node node_modules/vite/bin/vite.js build --outDir $built --emptyOutDir --logLevel warn || {
        rm -rf $built
        echo "vite could not build dashboard/" >&2
        return 1
    }
    "$python" ../scripts/compress.py $built
    # Two renames: a running server misses its files for a moment at most.
    [ ! -d $static ] || mv $static $built.old
    mv $built $static
    rm -rf $built.old
    echo "$now" >$stamp
}

case $1 in
build) build ;;
check) prepare && node node_modules/typescript/bin/tsc --incremental --tsBuildInfoFile node_modules/.tsbuildinfo && node node_modules/@biomejs/biome/bin/biome ci --error-on-warnings ;;
test) prepare && node node_modules/vitest/vitest.mjs run ;;
try)
    [ "${LANEWAY_SKIP_WEB:-}" != 1 ] || exit 0
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    # Without a network, npm would try for minutes.
    export npm_config_fetch_retries=1 npm_config_fetch_retry_mintimeout=500 npm_config_fetch_timeout=30000
    ../scripts/dashboard.sh build 2>"$log" || {
        echo "laneway: the dashboard was not built: $(grep . "$log" | tail -n 1) (scripts/dashboard.sh build says more)"
    }
    ;;
esac
