"""pgbouncer in transaction mode in front of an embedded PostgreSQL."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from laneway.embedded.account import cluster_account
from laneway.embedded.postgres import EmbeddedPostgres
from laneway.testing import faults

POOL_SIZE = 8
_CONFIG = """
[databases]
* = host={host} port={port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen_port}
unix_socket_dir =
pool_mode = transaction
default_pool_size = {pool_size}
max_client_conn = 200
auth_type = trust
auth_file = {users}
logfile = {log}
"""


class NoPooler(Exception):
    """pgbouncer is not installed, or does not start."""


@contextlib.contextmanager
def pgbouncer(postgres: EmbeddedPostgres, home: Path) -> Iterator[str]:
    """The DSN of the same database through a pooler."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        raise NoPooler("this row needs pgbouncer (Debian package pgbouncer)")
    direct = conninfo_to_dict(postgres.dsn)
    account = cluster_account(postgres.data_dir / "pgdata")
    home.mkdir()
    users, config, log = home / "users.txt", home / "pgbouncer.ini", home / "pgbouncer.log"
    port = _free_port()
    users.write_text(f'"{direct["user"]}" "{direct["password"]}"\n')
    config.write_text(
        _CONFIG.format(
            host=direct["host"],
            port=direct["port"],
            listen_port=port,
            pool_size=POOL_SIZE,
            users=users,
            log=log,
        )
    )
    for path in (home, users, config):
        path.chmod(0o700 if path.is_dir() else 0o600)
        account.own(path)
    process = subprocess.Popen(
        faults.tied([program, "-q", str(config)]),
        cwd="/",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # pgbouncer refuses to run as root.
        user=account.uid if account.is_other else None,
        group=account.gid if account.is_other else None,
        extra_groups=[] if account.is_other else None,
        start_new_session=True,
    )
    try:
        dsn = make_conninfo(
            host="127.0.0.1",
            port=port,
            dbname=direct["dbname"],
            user=direct["user"],
            password=direct["password"],
        )
        _await(dsn, process, log)
        yield dsn
    finally:
        process.kill()
        process.wait()


def _await(dsn: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            with psycopg.connect(dsn, prepare_threshold=None) as conn:
                conn.execute("select 1")
            return
        except psycopg.OperationalError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                output = log.read_text() if log.exists() else ""
                raise NoPooler(f"pgbouncer did not start: {error}\n{output}") from error
            time.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
