"""Finds the project of the working directory, which has one configuration and one database."""

from __future__ import annotations

import os
from pathlib import Path
from stat import S_ISDIR, S_IWOTH
from typing import Final

CONFIG_FILE: Final = "laneway.toml"
# Holds the embedded database of a project.
_DATA_DIRECTORY: Final = ".laneway"
_MARKS: Final = (CONFIG_FILE, "pyproject.toml", ".git")


def find_project(start: Path | None = None) -> Path:
    """The nearest directory upwards with a laneway.toml, pyproject.toml or .git; else `start`.

    An embedded database of this account is a mark too; one of another account is not.
    The home directory is never the project of a directory below it: many have a .git there. Nor
    is a directory that every account can write, such as /tmp, or one of another account: others
    could configure us. In a directory of another account, such as a container's mount, the project
    is that account's: its configuration needs consent wherever it is.
    """
    here, home = _working_directory() if start is None else start.resolve(), _home()
    owner = here.stat().st_uid
    is_foreign = not is_trusted(here)
    for directory in (here, *here.parents):
        found = directory.stat()
        is_public = directory == home or found.st_mode & S_IWOTH
        is_allowed = found.st_uid == owner if is_foreign else is_trusted(directory)
        if not is_allowed or (directory != here and is_public):
            break
        if any((directory / mark).exists() for mark in _MARKS) or _has_own_data(directory):
            return directory
    return here


def _has_own_data(directory: Path) -> bool:
    try:
        found = (directory / _DATA_DIRECTORY).lstat()
    except OSError:
        return False
    return S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def is_trusted(path: Path) -> bool:
    """Whether a path and what it may link to belong to this account or to root."""
    try:
        owners = {path.lstat().st_uid, path.stat().st_uid}
    except OSError:
        return False
    return owners <= {0, os.geteuid()}


def _working_directory() -> Path:
    try:
        return Path.cwd().resolve()
    except FileNotFoundError:  # it was deleted
        return Path("/")


def _home() -> Path | None:
    try:
        return Path.home().resolve()
    except RuntimeError:  # a container's account may have none
        return None
