#!/bin/sh
# scripts/need_debian.sh PACKAGE [COMMAND]
# Install a Debian package as root if it is missing; without root, fail and name it.
set -eu

package=$1
command=${2:-}
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

present() {
    if [ -n "$command" ]; then
        command -v "$command" >/dev/null
    else
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed'
    fi
}
die() { printf 'laneway: %s\n' "$*" >&2; exit 1; }

present && exit 0
command -v apt-get >/dev/null ||
    die "this needs ${command:-$package} (Debian package $package), but apt-get is not available to install it"
[ "$(id -u)" = 0 ] ||
    die "this needs the Debian package $package; install it with: sudo apt-get install $package"

echo "Installing the Debian package $package"
# RUNLEVEL=1: do not start the package's service.
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
install() { apt-get install --yes --quiet --no-install-recommends -o DPkg::Lock::Timeout=120 "$package" >/dev/null; }
install 2>/dev/null || { apt-get update --quiet >/dev/null && install; } ||
    die "apt-get could not install $package"
present || die "$package is installed, but ${command:-it} is not found on PATH"
