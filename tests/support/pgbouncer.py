"""pgbouncer in front of the PostgreSQL of a test."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from laneway.testing import faults

PGBOUNCER = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")


@contextmanager
def pgbouncer(dsn: str, **settings: object) -> Iterator[str]:
    """Run pgbouncer in transaction mode, unless `settings` differ; yield a DSN through it."""
    if PGBOUNCER is None:
        raise FileNotFoundError(
            "pgbouncer is not installed (Debian package pgbouncer): make test-pooler"
        )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    target = conninfo_to_dict(dsn)
    with tempfile.TemporaryDirectory(prefix="lw-pgbouncer-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        config = directory / "pgbouncer.ini"
        config.write_text(_config(target, port, settings))
        config.chmod(0o644)
        with subprocess.Popen(
            faults.tied([PGBOUNCER, "-q", str(config)]),
            stderr=subprocess.PIPE,
            start_new_session=True,
            **_account(str(target["host"])),
        ) as process:
            try:
                pooled = f"postgresql://someone@127.0.0.1:{port}/{target['dbname']}"
                _wait_until_ready(pooled, process)
                yield pooled
            finally:
                process.terminate()


def _account(host: str) -> dict[str, Any]:
    """Popen arguments for the owner of the server's socket: pgbouncer does not run as root."""
    if os.geteuid() != 0:
        return {}
    owner = pwd.getpwnam(Path(host).owner() if host.startswith("/") else "nobody")
    return {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}


def _config(target: dict[str, Any], port: int, settings: dict[str, object]) -> str:
    more = {"pool_mode": "transaction", **settings}
    backend = " ".join(
        f"{name}={target[name]}"
        for name in ("host", "port", "dbname", "user", "password")
        if target.get(name)
    )
    return (
        f"[databases]\n{target['dbname']} = {backend}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        + "".join(f"{name} = {value}\n" for name, value in more.items())
    )


def _wait_until_ready(dsn: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            psycopg.connect(dsn, connect_timeout=2).close()
            return
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
