"""The directory of the embedded servers: one for each project, or one for all of a user.

A project's data is in its `.laneway` directory. If that cannot be used, the data is below the
user's directory, still separate for each project.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from laneway.embedded.account import new_account

NAME: Final = ".laneway"
# Root's directory when the server's account cannot enter root's home.
SYSTEM_DATA = Path("/var/lib/laneway")


@dataclass(frozen=True)
class Location:
    """The directory that holds a cluster for each major version of PostgreSQL."""

    directory: Path
    # Why the data is not in the project; empty if it is.
    reason: str = ""

    def prepare(self) -> None:
        """Create the project's directory, which git ignores."""
        if self.directory.name != NAME:
            return
        self.directory.mkdir(mode=0o700, exist_ok=True)
        if new_account().is_other:
            self.directory.chmod(0o711)
        ignored = self.directory / ".gitignore"
        if not ignored.exists():
            ignored.write_text("*\n", encoding="utf-8")


def project_location(project: Path) -> Location:
    """The location of a project's data."""
    own = project / NAME
    reason = _unusable(own)
    if not reason:
        return Location(own)
    name = re.sub(r"[^A-Za-z0-9]+", "-", project.name).strip("-")[:32] or "project"
    digest = hashlib.sha256(os.fsencode(project)).hexdigest()[:8]
    return Location(user_directory() / "projects" / f"{name}-{digest}", reason)


def user_directory() -> Path:
    """The directory of this user's shared data."""
    own = _user_data().resolve()
    return own if new_account().may_enter(_nearest(own)) else SYSTEM_DATA


def existing_clusters(directory: Path) -> Iterator[Path]:
    """The clusters that a directory holds."""
    return (path.parent for path in sorted(directory.glob("postgres-*/pgdata")))


def _unusable(own: Path) -> str:
    nearest = _nearest(own)
    if not os.access(nearest, os.W_OK | os.X_OK):
        return f"{nearest} cannot be written"
    account = new_account()
    if not account.may_enter(nearest):
        return f"the account `{account.name}`, which runs PostgreSQL for root, cannot enter it"
    return ""


def _nearest(path: Path) -> Path:
    return next(one for one in (path, *path.parents) if one.exists())


def _user_data() -> Path:
    if chosen := os.environ.get("XDG_DATA_HOME", "").strip():
        return Path(chosen).expanduser() / "laneway"
    is_mac = sys.platform == "darwin"
    try:
        return Path(
            f"~/{'Library/Application Support' if is_mac else '.local/share'}/laneway"
        ).expanduser()
    except RuntimeError:  # a container's account may have no home
        return SYSTEM_DATA
