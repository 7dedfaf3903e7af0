"""The command line in process, and as a real program."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import psycopg
import pytest
import typer.testing
from typer.main import get_command
from typer.testing import CliRunner

from laneway.cli.main import app
from tests.support.warm_program import WarmProgram

Run = Callable[..., Any]

# Typer builds the tree of commands again for every call, which takes longer than most commands, and
# takes none that was made before.
typer.testing._get_command = cache(get_command)  # type: ignore[attr-defined]  # noqa: SLF001
PROGRAM = [sys.executable, "-m", "laneway"]


def invoke(*args: object, input: str | None = None, env: Mapping[str, str] | None = None) -> Any:  # noqa: A002
    """Runs a command in this process."""
    words = [str(arg) for arg in args]
    return CliRunner().invoke(app, words, input=input, env=env)


@pytest.fixture(params=["database", "server"])
def env(
    dsn: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, str]]:
    """The variables by which commands reach the jobs: in a database, and through a server."""
    for name in ("LANEWAY_DEBUG", "LANEWAY_DATABASE_URL", "LANEWAY_SERVER", "LANEWAY_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    if request.param == "database":
        yield {"LANEWAY_DATABASE_URL": dsn}
        return
    from tests.api.conftest import People
    from tests.http.threaded_server import served

    with psycopg.connect(dsn, autocommit=True) as conn, served(dsn) as url:
        token = People(conn).new("root", "platform_admin").token
        yield {"LANEWAY_SERVER": url, "LANEWAY_TOKEN": token}
        monkeypatch.delenv("LANEWAY_DATABASE_URL", raising=False)


@pytest.fixture
def run(dsn: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in this process, on a separate database."""
    monkeypatch.setenv("LANEWAY_DATABASE_URL", dsn)
    monkeypatch.delenv("LANEWAY_DEBUG", raising=False)
    return invoke


@pytest.fixture
def program(dsn: str, warm_program: WarmProgram) -> Run:
    """Runs a command as its own process."""

    def program(*args: object, input: str = "", **env: str) -> subprocess.CompletedProcess[str]:  # noqa: A002
        env = {**os.environ, "LANEWAY_DATABASE_URL": dsn, **env}
        return warm_program.run(*args, env=env, input=input)

    return program
