#!/bin/sh
# scripts/sdk_typescript.sh build|check|test
# Build sdk/typescript, check the build, or both. Installs its packages when they have changed.
set -eu
cd "$(dirname "$0")/../sdk/typescript"

python=../../.venv/bin/python
. ../../scripts/node.sh
need_node 20
install_packages sdk/typescript

# From nothing: tests of a renamed file must not run on.
build() { rm -rf dist && node scripts/generate.mjs && node node_modules/typescript/bin/tsc && touch dist/.built; }
check() { node --test --test-reporter=dot --test-timeout=30000 dist/test/*.test.js; }
case $1 in
build) build ;;
check) check ;;
test) build && check ;;
esac
