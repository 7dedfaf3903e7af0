"""The directory of one run, below one that all runs of an account share.

Both are locked by whoever uses them, and a lock goes with its process: what a killed run has left
behind is recognised by the next one and removed.
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

# What PostgreSQL's socket adds to our directory's name must still fit in a socket address.
_LONGEST_PLACE = 45
_SERVER = "postgres"


@contextlib.contextmanager
def private_home() -> Iterator[Path]:
    """A new directory, removed at the end; first removes what killed runs have left."""
    shared = _place() / f"laneway-demo-{os.geteuid()}"
    with _alone_in(shared):
        _remove_stale(shared)
        home = Path(tempfile.mkdtemp(prefix="", dir=shared))
        # PostgreSQL may run under another account, which must come through here.
        home.chmod(_mode())
        lock = try_lock(home / "lock")
    try:
        yield home
    finally:
        with _alone_in(shared):
            shutil.rmtree(home, ignore_errors=True)
            if lock is not None:
                os.close(lock)


def server_dir(home: Path) -> Path:
    """Where a run keeps its PostgreSQL."""
    return home / _SERVER


def env_file(home: Path) -> Path:
    """What another terminal reads to talk to this run."""
    return home / "env"


def _mode() -> int:
    return 0o711 if new_account().is_other else 0o700


def _place() -> Path:
    """The temporary directory, or a better known one where PostgreSQL could not use that."""
    account = new_account()
    for name in (tempfile.gettempdir(), "/tmp", "/var/tmp"):  # noqa: S108 - checked below
        place = Path(name).resolve()
        is_plain = re.fullmatch(r"[\w./-]+", str(place), re.ASCII) is not None
        if is_plain and len(str(place)) <= _LONGEST_PLACE and account.may_enter(place):
            return place
    raise ConfigError(
        f"no temporary directory that the account `{account.name}` may enter: set TMPDIR to one"
    )


@contextlib.contextmanager
def _alone_in(shared: Path) -> Iterator[None]:
    """Hold the lock of the shared directory; whoever leaves it empty removes it."""
    path = shared / "lock"
    while True:
        with contextlib.suppress(FileExistsError):
            shared.mkdir(mode=0o700)
            shared.chmod(_mode())
        _require_ours(shared)
        try:
            lock = open_private(path)
        except FileNotFoundError:
            continue  # removed since; make it again
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
    """Whether what we have locked is still what others would lock."""
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
        raise ConfigError(f"{shared} could be changed by others: remove it, or set TMPDIR")


def _remove_stale(shared: Path) -> None:
    for home in shared.iterdir():
        if not home.is_dir() or home.is_symlink():
            continue
        lock = try_lock(home / "lock")
        if lock is None:
            continue  # its run lives
        try:
            # Its guardian stops the server; we only make sure before we take its files away.
            if EmbeddedPostgres(server_dir(home)).stop("immediate"):
                shutil.rmtree(home, ignore_errors=True)
        except DatabaseUnavailable:
            pass  # left to the run after us
        finally:
            os.close(lock)
