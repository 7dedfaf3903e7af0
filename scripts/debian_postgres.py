"""Run a command with Debian's PostgreSQL, as its package configures a new cluster.

Usage (as root): python scripts/debian_postgres.py [--measured] COMMAND [ARGUMENT …]

The command finds the server in LANEWAY_TEST_DATABASE_URL. It has JIT, Debian's configuration and a
natural-language collation. The cluster is in memory and is dropped at the end. With --measured it
is on disk and records commit timestamps.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = Path("/usr/lib/postgresql")
NATURAL = ("--locale-provider=icu", "--icu-locale=en-US", "--locale=C.UTF-8", "--encoding=UTF8")


@contextmanager
def cluster(*, is_measured: bool = False) -> Iterator[str]:
    """Run a cluster of the newest installed major; yield its DSN."""
    majors = sorted((p.name for p in PROGRAMS.glob("[0-9]*")), key=int)
    if not majors or shutil.which("pg_createcluster") is None:
        sys.exit("laneway: Debian's PostgreSQL is missing; run scripts/need_debian.sh postgresql")
    if os.geteuid() != 0:
        sys.exit("laneway: only root may create a cluster of Debian's PostgreSQL")
    name, port = f"laneway{os.getpid()}", _free_port()
    memory = Path("/dev/shm")  # noqa: S108 - mkdtemp makes the directory
    place = None if is_measured or not memory.is_dir() else memory
    where = Path(tempfile.mkdtemp(prefix="lw-debian-", dir=place))
    where.chmod(0o755)
    create = ["pg_createcluster", "--start-conf=manual", f"--port={port}"]
    try:
        _run([*create, f"--datadir={where / 'data'}", majors[-1], name, "--", *NATURAL])
        more = ["-o", "-c track_commit_timestamp=on"] if is_measured else []
        _run(["pg_ctlcluster", majors[-1], name, "start", *more])
        password = secrets.token_hex(8)
        _psql(port, f"create role laneway superuser login password '{password}'")
        yield f"postgresql://laneway:{password}@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run(["pg_dropcluster", "--stop", majors[-1], name], check=False)
        shutil.rmtree(where, ignore_errors=True)


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=sys.stderr)


def _psql(port: int, text: str) -> None:
    ask = ["psql", "-qX", "-v", "ON_ERROR_STOP=1", "-p", str(port), "-d", "postgres"]
    # On stdin: others can read a command line.
    subprocess.run(["runuser", "-u", "postgres", "--", *ask], input=text, text=True, check=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _end(number: int, frame: object) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    # Exit normally on SIGTERM, so that the cluster is dropped.
    signal.signal(signal.SIGTERM, _end)
    is_measured = "--measured" in sys.argv[1:2]
    with cluster(is_measured=is_measured) as dsn:
        ended = subprocess.run(
            sys.argv[1 + is_measured :],
            env={**os.environ, "LANEWAY_TEST_DATABASE_URL": dsn},
            check=False,
        )
    sys.exit(ended.returncode)
