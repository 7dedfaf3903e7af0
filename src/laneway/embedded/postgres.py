"""Starts and stops a PostgreSQL server on one data directory."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Literal, Self
from urllib.parse import quote

from laneway.embedded import guardian
from laneway.embedded.account import cluster_account
from laneway.embedded.binaries import Binaries, binaries_for, find_binaries
from laneway.embedded.cluster import DATABASE, SUPERUSER, Cluster, make_home
from laneway.embedded.location import Location, user_directory
from laneway.errors import ConfigError, DatabaseUnavailable

StopMode = Literal["fast", "immediate"]

SETTINGS: Mapping[str, str] = {
    "fsync": "on",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
START_TIMEOUT = 60.0

# Objects that hold a share of `users.lock`; kept, so that garbage collection stops no server.
_started: set[EmbeddedPostgres] = set()


class EmbeddedPostgres:
    """A PostgreSQL server on one data directory, shared by every process that starts it.

        with EmbeddedPostgres() as postgres:
            psycopg.connect(postgres.dsn)

    The last user to leave stops it. With `tie_to_parent` a process that dies counts as having
    left; without it the server outlives a process that ends without `stop`. `settings` apply
    only if this call starts the server; one that already runs is used as it is. Without a
    `data_dir` or a `location` the data is in the user's shared directory.
    """

    def __init__(
        self,
        data_dir: Path | None = None,
        *,
        location: Location | None = None,
        settings: Mapping[str, str] | None = None,
        binaries: Path | None = None,
        port: int | None = None,
        tie_to_parent: bool = True,
    ) -> None:
        self._given_data_dir = data_dir
        self._location = location
        self._given_binaries = binaries
        self._settings = {**SETTINGS, **(settings or {})}
        self._port = port
        self._tie_to_parent = tie_to_parent
        self._guardian: subprocess.Popen[str] | None = None
        self._users_lock: int | None = None
        for name in self._settings:
            if not re.fullmatch(r"[A-Za-z_][\w.]*", name):
                raise ConfigError(f"settings: {name!r} is not the name of a PostgreSQL setting")

    @cached_property
    def data_dir(self) -> Path:
        """The directory of this server: the cluster, its password, locks and log."""
        if self._given_data_dir is not None:
            return self._given_data_dir.expanduser().resolve()
        name = f"postgres-{self._binaries.major}"
        if self._location is not None:
            return self._location.directory / name
        if chosen := os.environ.get("LANEWAY_DATA_DIR"):
            return Path(chosen).expanduser().resolve() / name
        return user_directory() / name

    @property
    def log_path(self) -> Path:
        return self.data_dir / "postgres.log"

    @property
    def has_data(self) -> bool:
        """Whether the cluster was created already."""
        return (self.data_dir / "pgdata").is_dir()

    @property
    def is_running(self) -> bool:
        return self.data_dir.is_dir() and self._postmaster.is_ready

    @property
    def dsn(self) -> str:
        """The DSN, in the form that libpq, psycopg and asyncpg all read."""
        lines = self._postmaster.pid_file()
        if not self.is_running or len(lines) < 5:
            raise DatabaseUnavailable(
                f"the embedded PostgreSQL in {self.data_dir} is not running: call start()"
            )
        port, socket_dir = lines[3:5]
        login = f"{SUPERUSER}:{self._cluster.password()}"
        return f"postgresql://{login}@/{DATABASE}?host={quote(socket_dir)}&port={port}"

    def start(self) -> str:
        """Starts the server, or joins the one that runs, and returns its DSN."""
        try:
            if self._given_data_dir is None and self._location is not None:
                self._location.prepare()
            make_home(self.data_dir, cluster_account(self.data_dir / "pgdata"))
            with self._start_lock():
                self._join()
                self._launch()
                return self.dsn
        except BaseException as error:
            if self in _started:
                self.stop()
            if isinstance(error, PermissionError):
                raise ConfigError(
                    f"this user may not use {error.filename}: choose another data directory "
                    "with LANEWAY_DATA_DIR, or set DATABASE_URL"
                ) from error
            raise

    def stop(self, mode: StopMode = "fast") -> bool:
        """Leaves the server; stops it and returns True if this was its last user."""
        _started.discard(self)
        process, self._guardian = self._guardian, None
        users_lock, self._users_lock = self._users_lock, None
        if process is not None:
            process.communicate(f"{mode}\n")
            if process.returncode in (guardian.STOPPED, guardian.STILL_USED):
                return process.returncode == guardian.STOPPED
        if not self.data_dir.is_dir():
            return True
        with self._unavailable_if_stuck():
            return guardian.leave(self.data_dir, mode, users_lock)

    def restart(self, mode: StopMode = "fast") -> str:
        """Restarts the server, even if other processes use it; returns the DSN."""
        with self._start_lock(), self._unavailable_if_stuck():
            self._postmaster.stop(mode)
        return self.start()

    def reset(self) -> str:
        """Stops the server, even if other processes use it, deletes its data and starts a new one.

        The password stays the same, so that those processes can connect again.
        """
        if (self.data_dir / "pgdata").is_symlink():
            raise ConfigError(
                f"{self.data_dir / 'pgdata'} is a symbolic link, and reset would leave its target:"
                " replace the link with the directory, or delete both"
            )
        if self.has_data:
            with self._start_lock(), self._unavailable_if_stuck():
                self._postmaster.stop("immediate")
                self._cluster.delete()
        return self.start()

    def kill(self) -> None:
        """Kills the server as a crash would; the next start recovers."""
        with self._start_lock(), self._unavailable_if_stuck():
            self._postmaster.kill()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @cached_property
    def _binaries(self) -> Binaries:
        return find_binaries(self._given_binaries)

    @property
    def _cluster(self) -> Cluster:
        account = cluster_account(self.data_dir / "pgdata")
        return Cluster(self.data_dir, account, self._binaries)

    @property
    def _postmaster(self) -> guardian.Postmaster:
        return guardian.Postmaster(self.data_dir)

    def _start_lock(self) -> contextlib.AbstractContextManager[None]:
        return guardian.locked(self.data_dir / "start.lock")

    def _join(self) -> None:
        """Takes a share of `users.lock`, held by a guardian or by this process."""
        if self._users_lock is not None:
            return
        if self._guardian is not None:
            if self._guardian.poll() is None:
                return
            self._guardian.communicate()  # it was killed: close our end of its pipe
        # Laneway never blocks this: it takes the lock exclusively only under the start lock.
        users_lock = guardian.try_lock(self.data_dir / "users.lock", fcntl.LOCK_SH)
        if users_lock is None:
            raise DatabaseUnavailable(f"{self.data_dir}/users.lock is held by another program")
        if self._tie_to_parent:
            log = guardian.open_private(self.log_path)
            arguments = [str(self.data_dir), str(users_lock), str(os.getpid())]
            try:
                self._guardian = subprocess.Popen(
                    [sys.executable, "-IS", guardian.__file__, *arguments],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    text=True,
                    cwd="/",
                    pass_fds=[users_lock],
                    start_new_session=True,
                )
            finally:
                os.close(log)
                os.close(users_lock)
        else:
            self._users_lock = users_lock
        _started.add(self)

    def _launch(self) -> None:
        """Starts the server unless it runs, and waits until it answers."""
        deadline = time.monotonic() + START_TIMEOUT
        while (server_lock := self._postmaster.reserve()) is None:
            if self._postmaster.is_ready:
                self._require_port()
                return
            # The server is still starting or stopping, or its last processes are ending.
            if time.monotonic() > deadline:
                raise DatabaseUnavailable(
                    f"the server in {self.data_dir} neither answers nor ends: see {self.log_path}"
                )
            time.sleep(0.02)
        try:
            cluster = self._cluster
            runnable = binaries_for(cluster.account, cluster.binaries)
            cluster = Cluster(cluster.home, cluster.account, runnable)
            cluster.create(server_lock, self._settings)
            cluster.serve(server_lock, self._settings, self._port, START_TIMEOUT)
        finally:
            os.close(server_lock)

    def _require_port(self) -> None:
        running = self._postmaster.pid_file()[3]
        if self._port is not None and running != str(self._port):
            raise ConfigError(
                f"port: the server in {self.data_dir} already runs with port {running}, not "
                f"{self._port}: stop it first, or do not set the port"
            )

    @contextlib.contextmanager
    def _unavailable_if_stuck(self) -> Iterator[None]:
        try:
            yield
        except guardian.ServerStillRunning as error:
            raise DatabaseUnavailable(f"{error}: see {self.log_path}") from error


def _stop_at_exit() -> None:
    for postgres in [each for each in _started if each._tie_to_parent]:
        postgres.stop()


def _forget_after_fork() -> None:
    # A forked child inherits the descriptors that keep the server in use, but does not own them.
    for postgres in _started:
        if postgres._users_lock is not None:
            os.close(postgres._users_lock)
            postgres._users_lock = None
        if postgres._guardian is not None:
            if postgres._guardian.stdin is not None:
                postgres._guardian.stdin.close()
            postgres._guardian.returncode = 0  # the parent's child: this process cannot wait for it
            postgres._guardian = None
    _started.clear()


atexit.register(_stop_at_exit)
os.register_at_fork(after_in_child=_forget_after_fork)
