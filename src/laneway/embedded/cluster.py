"""The files of one server: the cluster, its password, its socket directory, locks and log.

In the data directory the account that runs the server owns only `pgdata` and `run`. The rest stays
ours, so that root never opens a file that the account could have replaced.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import shlex
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from laneway.embedded import guardian
from laneway.embedded.account import Account
from laneway.embedded.binaries import Binaries
from laneway.errors import ConfigError, DatabaseUnavailable

SUPERUSER = DATABASE = "laneway"

# A socket's whole path must fit in sun_path: 108 bytes with its NUL on Linux, 104 on macOS.
_SOCKET_PATH_LIMIT = 103
_LOG_LIMIT = 10 * 1024 * 1024


@dataclass(frozen=True)
class Cluster:
    """One cluster on disk, with the programs and the account that serve it."""

    home: Path
    account: Account
    binaries: Binaries

    @property
    def pgdata(self) -> Path:
        return self.home / "pgdata"

    @property
    def socket_dir(self) -> Path:
        """The socket directory: in the data directory unless its path is unsuitable.

        A path is unsuitable if it is too long or would need quoting in a DSN.
        """
        inside = self.home / "run"
        socket = inside / ".s.PGSQL.65535"
        is_short = len(os.fsencode(socket)) <= _SOCKET_PATH_LIMIT
        if is_short and re.fullmatch(r"[\w./-]+", str(inside), re.ASCII):
            return inside
        digest = hashlib.sha256(os.fsencode(self.home)).hexdigest()
        return Path("/tmp") / f"laneway-{self.account.uid}-{digest[:16]}"  # noqa: S108 - checked

    def create(self, server_lock: int, settings: Mapping[str, str]) -> None:
        """Creates the cluster with its database, unless it exists."""
        if self.pgdata.exists():
            self._require_ours()
            return
        # Left by a killed process; its initdb has ended, because we hold the server lock.
        staging = self.home / "pgdata.new"
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir(mode=0o700)
        self.account.own(staging)
        quick = ["--no-sync"] if settings.get("fsync") == "off" else []
        with self._password_file() as password_file:
            self._run(
                server_lock,
                "initdb",
                f"--pgdata={staging}",
                f"--username={SUPERUSER}",
                f"--pwfile={password_file}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--locale=C",
                "--no-instructions",
                *quick,
            )
        sql = f"CREATE DATABASE {DATABASE}\n"
        fsync = f"fsync={settings.get('fsync', 'on')}"
        single = ("--single", "-D", str(staging), "-c", "exit_on_error=on", "-c", fsync, "postgres")
        self._run(server_lock, "postgres", *single, stdin=sql)
        staging.rename(self.pgdata)

    def delete(self) -> None:
        """Deletes the cluster; its server must have ended."""
        self._require_ours()
        # Renamed first: a cluster that is half deleted would not start.
        old = self.home / "pgdata.old"
        shutil.rmtree(old, ignore_errors=True)
        self.pgdata.rename(old)
        shutil.rmtree(old)

    def serve(
        self, server_lock: int, settings: Mapping[str, str], port: int | None, timeout: float
    ) -> None:
        """Starts the server and waits until it answers; its processes inherit the lock."""
        _make_private(self.socket_dir, self.account)
        self._clear_lock_files()
        flags = {
            **settings,
            "listen_addresses": "" if port is None else "127.0.0.1",
            "port": str(port or 5432),
            "unix_socket_directories": str(self.socket_dir),
            "unix_socket_permissions": "0700",
        }
        options = [word for name, value in flags.items() for word in ("-c", f"{name}={value}")]
        log = self._open_log()
        before = os.fstat(log).st_size
        try:
            started = self.account.run(
                [
                    self.binaries.program("pg_ctl"),
                    *("start", "--silent", "--wait", f"--timeout={timeout:.0f}"),
                    *("-D", str(self.pgdata), "-o", shlex.join(options)),
                ],
                output=log,
                pass_fds=[server_lock],
            )
            if started.returncode != 0:
                output = os.pread(log, 1 << 16, before).decode(errors="replace")
                raise DatabaseUnavailable(
                    f"PostgreSQL does not start in {self.home}:\n{_tail(output)}\n"
                    f"The full log is in {self.log_path}"
                )
        finally:
            os.close(log)

    @property
    def log_path(self) -> Path:
        return self.home / "postgres.log"

    def password(self) -> str:
        """The superuser's password; the first call creates it."""
        path = self.home / "password"
        if not path.exists():
            staging = self.home / "password.new"
            staging.unlink(missing_ok=True)
            _write_private(staging, secrets.token_urlsafe(24))
            staging.rename(path)
        return path.read_text()

    def _require_ours(self) -> None:
        try:
            major = (self.pgdata / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            major = ""
        if not major or not (self.home / "password").exists():
            raise ConfigError(
                f"{self.pgdata} was not made by Laneway: choose another data directory"
            )
        if major != self.binaries.major:
            raise ConfigError(
                f"{self.home} was made by PostgreSQL {major}, but the programs in "
                f"{self.binaries.directory} are {self.binaries.version}: set LANEWAY_PG_BIN to "
                f"those of PostgreSQL {major}, or choose another data directory"
            )

    @contextlib.contextmanager
    def _password_file(self) -> Iterator[Path]:
        # initdb runs as the account, which may read this copy but no other file of ours.
        path = self.home / "password.initdb"
        path.unlink(missing_ok=True)
        _write_private(path, self.password())
        self.account.own(path)
        try:
            yield path
        finally:
            path.unlink()

    def _run(self, server_lock: int, program: str, *arguments: str, stdin: str = "") -> None:
        command = [self.binaries.program(program), *arguments]
        ran = self.account.run(command, stdin=stdin, pass_fds=[server_lock])
        if ran.returncode != 0:
            raise DatabaseUnavailable(
                f"cannot create a PostgreSQL cluster in {self.home}: {program} failed:\n"
                f"{_tail(ran.stdout)}"
            )

    def _clear_lock_files(self) -> None:
        """Removes stale lock files of a dead server, which would keep PostgreSQL from starting.

        PostgreSQL only checks that a process with that pid exists: after a crash that may be
        another program, or a zombie. Our server lock proves that the server is gone.
        """
        for path in (self.pgdata / "postmaster.pid", *self.socket_dir.glob(".s.PGSQL.*.lock")):
            with contextlib.suppress(FileNotFoundError, ValueError):
                pid = int(path.read_text().split("\n", 1)[0])
                is_server = guardian.serves(guardian.command_line(pid), self.pgdata)
                if is_server:
                    raise ConfigError(
                        f"a PostgreSQL that Laneway did not start (pid {pid}) runs on "
                        f"{self.pgdata}: stop it first"
                    )
                if is_server is False and guardian.exists(pid):
                    path.unlink()

    def _open_log(self) -> int:
        with contextlib.suppress(FileNotFoundError):
            if self.log_path.stat().st_size > _LOG_LIMIT:
                self.log_path.replace(self.log_path.with_suffix(".log.1"))
        return guardian.open_private(self.log_path)


def make_home(home: Path, account: Account) -> None:
    """Creates the data directory if it is missing, so that the account can enter it."""
    missing = [path for path in (home, *home.parents) if not path.exists()]
    try:
        for path in reversed(missing):
            path.mkdir(mode=0o700, exist_ok=True)
            if account.is_other:
                path.chmod(0o711)
    except OSError as error:
        raise ConfigError(
            f"cannot create the data directory {home}: {error.strerror}; "
            "set LANEWAY_DATA_DIR to a directory that can be written"
        ) from error
    if not account.may_enter(home):
        raise ConfigError(
            f"the account `{account.name}`, which runs PostgreSQL because root must not, cannot "
            f"enter {home}: set LANEWAY_DATA_DIR to one that it can enter, such as /var/lib/laneway"
        )


def _make_private(directory: Path, account: Account) -> None:
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        found = directory.lstat()
        if directory.is_symlink() or found.st_uid != account.uid or found.st_mode & 0o077:
            raise ConfigError(
                f"{directory} is not a private directory of `{account.name}`: remove it"
            ) from None
    else:
        account.own(directory)


def _write_private(path: Path, text: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _tail(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-8:])
