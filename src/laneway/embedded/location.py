"""The directory of the embedded servers: one for each project, or one for all of a user.

A project's data is in its `.laneway` directory. If that cannot be used, the data is below the
user's directory, still separate for each project.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from laneway.embedded.account import is_ours, new_account
from laneway.errors import ConfigError

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
        try:
            self.directory.mkdir(mode=0o700)
            is_new = True
        except FileExistsError:
            is_new = False
        _require_own(self.directory)
        # By its descriptor: the path may name another directory by now.
        number = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            if is_new and new_account().is_other:
                os.fchmod(number, 0o711)
            _ignore(number)
        finally:
            os.close(number)


def project_location(project: Path) -> Location:
    """The location of a project's data."""
    own = project / NAME
    reason = _exposed(project)
    if not reason:
        _require_own(own)
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


def _require_own(directory: Path) -> None:
    """Refuse a directory that another account made, or can change."""
    try:
        found = directory.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(found.st_mode):
        problem = "is not a directory, or is a symbolic link"
    elif not is_ours(found):
        problem = f"belongs to another account (uid {found.st_uid})"
    elif found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        problem = f"can be changed by other accounts (mode {stat.S_IMODE(found.st_mode):o})"
    else:
        return
    raise ConfigError(f"{directory} {problem}: remove it, or set LANEWAY_DATA_DIR")


def _ignore(directory: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with contextlib.suppress(FileExistsError):
        number = os.open(".gitignore", flags, 0o644, dir_fd=directory)
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write("*\n")


def _exposed(project: Path) -> str:
    """Why other accounts could replace the project's directory; empty if they cannot."""
    found = project.stat()
    if not is_ours(found):
        return f"{project} belongs to another account (uid {found.st_uid})"
    if found.st_mode & stat.S_IWOTH:
        return f"every account can write {project}"
    return ""


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
