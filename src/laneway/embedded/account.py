"""The account that runs the server.

An ordinary user runs the server directly. PostgreSQL refuses to run as root, so root gives the
cluster to an account that owns no other file of ours and may be unable to enter our directories.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from laneway.errors import ConfigError


@dataclass(frozen=True)
class Account:
    """The operating-system account that runs the server."""

    name: str
    uid: int
    gid: int

    @property
    def is_other(self) -> bool:
        return self.uid != os.geteuid()

    def own(self, path: Path) -> None:
        """Makes the account the owner of a file or directory that we have just created."""
        if self.is_other:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def may_enter(self, directory: Path) -> bool:
        """Whether the account can enter the directory; the kernel decides, because of ACLs."""
        if not self.is_other:
            return os.access(directory, os.X_OK)
        try:
            ran = self.run(["/bin/sh", "-c", 'cd -- "$1"', "sh", str(directory)])
        except OSError:  # we may not switch to the account at all
            return False
        return ran.returncode == 0

    def run(
        self,
        command: Sequence[str],
        *,
        stdin: str = "",
        output: int = subprocess.PIPE,
        pass_fds: Sequence[int] = (),
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command as the account, without our terminal, directory and environment."""
        return subprocess.run(
            command,
            input=stdin,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            cwd="/",
            env=_environment(),
            user=self.uid if self.is_other else None,
            group=self.gid if self.is_other else None,
            extra_groups=[] if self.is_other else None,
            umask=0o077,
            pass_fds=pass_fds,
            start_new_session=True,
        )


def cluster_account(pgdata: Path) -> Account:
    """The owner of an existing cluster, or the account for a new one.

    Root uses only clusters that it created for a server's account: the owner of another one could
    change its jobs, and lead root's files elsewhere by links.
    """
    home = pgdata.parent
    if home.exists() and not is_ours(home.stat()):
        raise _foreign(home)
    if not pgdata.exists():
        return new_account()
    owner = pgdata.stat().st_uid
    is_allowed = owner == os.geteuid() if os.geteuid() != 0 else owner in _server_uids()
    if not is_allowed:
        raise _foreign(pgdata)
    return _account(owner)


def is_ours(found: os.stat_result) -> bool:
    """Whether a file belongs to the current account or to root."""
    return found.st_uid in (0, os.geteuid())


def new_account() -> Account:
    """The account for a new cluster: the current user or, as root, `postgres` or else `nobody`."""
    if os.geteuid() != 0:
        return _account(os.geteuid())
    for uid in _server_uids():
        return _account(uid)
    raise ConfigError(
        "PostgreSQL refuses to run as root and there is neither a `postgres` nor a `nobody` "
        "account to run it: run as an ordinary user, or set DATABASE_URL"
    )


def _server_uids() -> list[int]:
    """The accounts that run servers for root, the preferred one first."""
    found = []
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            found.append(pwd.getpwnam(name).pw_uid)
    return found


def _foreign(path: Path) -> ConfigError:
    return ConfigError(f"{path} belongs to another user: run as that user, or set LANEWAY_DATA_DIR")


def current_account() -> Account:
    """The account that runs this program."""
    return _account(os.geteuid())


def _account(uid: int) -> Account:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:  # a container's arbitrary uid has no entry
        return Account(str(uid), uid, os.getegid() if uid == os.geteuid() else uid)
    return Account(entry.pw_name, uid, entry.pw_gid)


def _environment() -> Mapping[str, str]:
    # Keeps our secrets from the account, and PGDATA, PGPORT and the like from PostgreSQL's tools.
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return {**kept, "LC_ALL": "C", "TZ": "UTC"}
