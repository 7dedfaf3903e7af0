"""The directory of one run, below a directory that all runs of an account share.

Each run locks its directory, and the lock ends with the process. So the next run recognises and
removes what a killed run left behind.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from laneway.embedded import EmbeddedPostgres
from laneway.embedded.account import new_account
from laneway.embedded.guardian import open_private, try_lock
from laneway.errors import ConfigError, DatabaseUnavailable

# PostgreSQL adds to this path, and the result must fit in a socket address.
_LONGEST_PATH = 45
_SERVER = "postgres"


@contextlib.contextmanager
def private_home() -> Iterator[Path]:
    """Create a directory and remove it at the end; first remove what killed runs left behind."""
    shared = _temporary_dir() / f"laneway-demo-{os.geteuid()}"
    with _locked(shared):
        _remove_stale(shared)
        home = Path(tempfile.mkdtemp(prefix="", dir=shared))
        # PostgreSQL may run as another account, which must be able to enter.
        home.chmod(_mode())
        lock = try_lock(home / "lock")
    try:
        yield home
    finally:
        with _locked(shared):
            shutil.rmtree(home, ignore_errors=True)
            if lock is not None:
                os.close(lock)


def server_dir(home: Path) -> Path:
    """The data directory of a run's PostgreSQL."""
    return home / _SERVER


def env_file(home: Path) -> Path:
    """The file that another terminal sources to connect to this run."""
    return home / "env"


def _mode() -> int:
    return 0o711 if new_account().is_other else 0o700


def _temporary_dir() -> Path:
    """The temporary directory, or a standard one where PostgreSQL could not use it."""
    account = new_account()
    for name in (tempfile.gettempdir(), "/tmp", "/var/tmp"):  # noqa: S108 - checked below
        directory = Path(name).resolve()
        is_plain = re.fullmatch(r"[\w./-]+", str(directory), re.ASCII) is not None
        if is_plain and len(str(directory)) <= _LONGEST_PATH and account.may_enter(directory):
            return directory
    raise ConfigError(
        f"the account `{account.name}` can enter no temporary directory: set TMPDIR to one"
    )


@contextlib.contextmanager
def _locked(shared: Path) -> Iterator[None]:
    """Hold the lock of the shared directory; remove the directory at the end if it is empty."""
    path = shared / "lock"
    while True:
        with contextlib.suppress(FileExistsError):
            shared.mkdir(mode=0o700)
            shared.chmod(_mode())
        _require_ours(shared)
        try:
            lock = open_private(path)
        except FileNotFoundError:
            continue  # Another run removed it: create it again.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _is_at(lock, path):
            break
        os.close(lock)
    try:
        yield
    finally:
        if os.listdir(shared) == [path.name]:
            path.unlink()
            shared.rmdir()
        os.close(lock)


def _is_at(lock: int, path: Path) -> bool:
    """Whether the locked file is still the file at the path."""
    try:
        return os.path.samestat(os.fstat(lock), path.stat())
    except FileNotFoundError:
        return False


def _require_ours(shared: Path) -> None:
    try:
        found = shared.lstat()
    except FileNotFoundError:
        return
    is_private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o022
    if not is_private or found.st_uid != os.geteuid():
        raise ConfigError(f"other accounts could change {shared}: remove it, or set TMPDIR")


def _remove_stale(shared: Path) -> None:
    for home in shared.iterdir():
        if not home.is_dir() or home.is_symlink():
            continue
        lock = try_lock(home / "lock")
        if lock is None:
            continue  # Its run is alive.
        try:
            # Its guardian stops the server; make sure of that before its files go.
            if EmbeddedPostgres(server_dir(home)).stop("immediate"):
                shutil.rmtree(home, ignore_errors=True)
        except DatabaseUnavailable:
            pass  # The next run tries again.
        finally:
            os.close(lock)
