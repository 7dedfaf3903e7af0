#!/bin/sh
# scripts/env.sh runtime|dev
# Install exactly the packages of requirements/<kind>.txt and this checkout into .venv.
# Does nothing if they are installed. PYTHON names the interpreter; default: the first suitable one on PATH.
set -eu
cd "$(dirname "$0")/.."

kind=$1
python=.venv/bin/python
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_USER=0

die() { printf 'laneway: %s\n' "$*" >&2; exit 1; }
new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
can_venv() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }
version() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }

find_python() {
    without_venv=
    if [ -n "${PYTHON:-}" ]; then
        set -- "$PYTHON"
    else
        set -- python3 python3.13 python3.12 python3.11 python3.14
    fi
    for candidate; do
        new_enough "$candidate" || continue
        if can_venv "$candidate"; then
            echo "$candidate"
            return
        fi
        without_venv=$candidate
    done
    if [ -n "$without_venv" ]; then # Debian packages the venv module separately
        scripts/need_debian.sh python3-venv >&2
        can_venv "$without_venv" || die "$without_venv has no working venv module; set PYTHON"
        echo "$without_venv"
    elif [ -n "${PYTHON:-}" ]; then
        die "PYTHON=$PYTHON is not a Python 3.11 or newer"
    else
        die "no Python 3.11 or newer on PATH; install one, or name it: make PYTHON=/path/to/python3.12 ..."
    fi
}

# The content of a current stamp: the checksum of the lock or of the project.
lock_print() { cksum <"requirements/$1.txt"; }
project_print() { cksum <pyproject.toml; pwd; }
current() { [ -f ".venv/.stamp-$1" ] && [ "$(cat ".venv/.stamp-$1")" = "$2" ]; }

if [ -x "$python" ] && [ -n "${PYTHON:-}" ] && [ "$(version "$PYTHON")" != "$(version "$python")" ]; then
    rm -rf .venv # built with another Python version
fi
if ! [ -x "$python" ]; then
    base=$(find_python)
    echo "Creating .venv with $base ($(version "$base"))"
    "$base" -m venv --clear .venv
fi

if ! current dev "$(lock_print dev)"; then # dev includes runtime
    if ! current "$kind" "$(lock_print "$kind")"; then
        echo "Installing requirements/$kind.txt into .venv"
        "$python" -m pip install -qq --require-hashes -r "requirements/$kind.txt"
        lock_print "$kind" >".venv/.stamp-$kind"
    fi
fi
if ! current project "$(project_print)"; then
    # The build backend is in the locks, and the dashboard is built apart: this downloads nothing.
    LANEWAY_SKIP_WEB=1 "$python" -m pip install -qq --no-deps --no-build-isolation -e .
    project_print >.venv/.stamp-project
fi
