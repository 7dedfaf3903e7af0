"""The embedded database of a project, by the command line as a real program."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from laneway.embedded.binaries import find_binaries
from laneway.embedded.postgres import EmbeddedPostgres
from tests.cli.conftest import Run
from tests.conftest import copy_of, short_data_dir
from tests.support.warm_program import WarmProgram

Program = Callable[..., subprocess.CompletedProcess[str]]
ANNOUNCED = "using embedded PostgreSQL"
MAJOR = find_binaries().major


@pytest.fixture
def place(cluster_seed: Path) -> Iterator[Path]:
    """A project, a home of this user and a database that older versions shared."""
    with short_data_dir() as path:
        (path / "project" / "src").mkdir(parents=True)
        (path / "project" / "pyproject.toml").touch()
        path.chmod(0o755)
        shared = path / "share" / "laneway"
        shared.mkdir(parents=True)
        with copy_of(cluster_seed) as copied:
            copied.rename(shared / f"postgres-{MAJOR}")
        yield path.resolve()


@pytest.fixture
def laneway(place: Path, warm_program: WarmProgram) -> Program:
    """Run a command in a directory of the project, without a database setting."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LANEWAY_D", "PG", "DATABASE_URL"))
    }
    env = {**kept, "XDG_DATA_HOME": str(place / "share")}

    def laneway(*args: str, inside: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        folder = place / "project" / inside
        return warm_program.run(*args, env={**env, **more}, cwd=folder)

    return laneway


def submit(laneway: Program, **more: str) -> subprocess.CompletedProcess[str]:
    return laneway("jobs", "submit", "greet", "{}", "--json", inside="src", **more)


def jobs(laneway: Program, **more: str) -> list[str]:
    listed = laneway("jobs", "ls", "--json", **more)
    assert listed.returncode == 0, listed.stderr
    assert ANNOUNCED not in listed.stderr
    return [json.loads(line)["id"] for line in listed.stdout.splitlines()]


def test_commands_of_a_project_share_a_database_that_is_announced_once(
    place: Path, laneway: Program
) -> None:
    own = place / "project" / ".laneway" / f"postgres-{MAJOR}"
    shared = place / "share" / "laneway" / f"postgres-{MAJOR}"
    first = submit(laneway)
    assert f"{ANNOUNCED} in {own}," in first.stderr
    assert f"in {shared}; to keep using it, set LANEWAY_EMBEDDED=shared" in first.stderr
    assert laneway("db", "path", inside="src").stdout == f"{own}\n"
    with EmbeddedPostgres(own):  # not started again for every command
        assert jobs(laneway) == [json.loads(first.stdout)["id"]]
        assert ANNOUNCED not in submit(laneway).stderr
        checked = laneway("doctor")
        assert (ANNOUNCED in checked.stderr, str(own) in checked.stdout) == (False, True)
    assert laneway("db", "path", LANEWAY_EMBEDDED="shared").stdout == f"{shared}\n"


def test_reset_deletes_the_data_under_a_running_server(place: Path, laneway: Program) -> None:
    own = place / "project" / ".laneway" / f"postgres-{MAJOR}"
    with EmbeddedPostgres(own) as server:
        before = server.dsn
        assert submit(laneway).returncode == 0
        unconfirmed = laneway("db", "reset")
        assert (unconfirmed.returncode, "--yes" in unconfirmed.stderr) == (4, True)
        assert len(jobs(laneway)) == 1
        cleared = laneway("db", "reset", "--yes", inside="src")
        assert (cleared.returncode, cleared.stderr) == (0, f"{own} is empty\n")
        assert jobs(laneway) == []
        assert server.dsn == before
    assert sorted(path.name for path in own.glob("pgdata*")) == ["pgdata"]


def test_reset_before_the_first_start_makes_an_empty_database(laneway: Program) -> None:
    assert laneway("db", "reset", "--yes").returncode == 0
    assert jobs(laneway) == []


def test_reset_refuses_a_database_that_is_not_embedded(program: Run) -> None:
    refused = program("db", "reset", "--yes")
    assert (refused.returncode, "LANEWAY_DATABASE_URL" in refused.stderr) == (4, True)
    assert program("jobs", "ls").returncode == 0


def test_embedded_postgresql_that_is_off_is_not_reset(laneway: Program) -> None:
    refused = laneway("db", "reset", "--yes", LANEWAY_EMBEDDED="off")
    assert (refused.returncode, "LANEWAY_EMBEDDED" in refused.stderr) == (4, True)


def test_commands_below_a_data_directory_use_its_database(place: Path, laneway: Program) -> None:
    (place / "project" / "pyproject.toml").unlink()
    own = place / "project" / ".laneway" / f"postgres-{MAJOR}"
    first = laneway("jobs", "submit", "greet", "{}", "--json")
    assert first.returncode == 0, first.stderr
    assert laneway("db", "path", inside="src").stdout == f"{own}\n"
    assert not (place / "project" / "src" / ".laneway").exists()
    with EmbeddedPostgres(own):
        listed = laneway("jobs", "ls", "--json", inside="src")
        assert json.loads(listed.stdout)["id"] == json.loads(first.stdout)["id"]
