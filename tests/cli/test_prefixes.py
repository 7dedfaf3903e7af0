"""Laws of job ids cut to a prefix, on a database and through a server."""

from __future__ import annotations

import json
import re
from uuid import UUID

import pytest

from laneway.cli.backends.server import ServerBackend
from laneway.cli.job_ids import resolve
from laneway.domain.job_id import parse_id
from laneway.errors import Refused
from laneway.http import AsyncClient
from tests.cli.conftest import invoke
from tests.cli.terminal import terminal
from tests.http.scripted_server import ScriptedServer, problem
from tests.support.job_factory import JobFactory
from tests.support.short_ids import short_form

ONE, TWIN, OTHER = (
    UUID(f"019a93c4-{middle}-8def-0123456789ab")
    for middle in ("1234-7abc", "1234-7abd", "1235-7abc")
)


@pytest.fixture
def made(factory: JobFactory) -> JobFactory:
    """Three jobs, two of one millisecond."""
    for job_id in (ONE, TWIN, OTHER):
        factory.conn.execute(
            "select * from laneway.submit('greet', '{}', id => %s::uuid)", [job_id]
        )
    return factory


@pytest.mark.parametrize(
    "command, more",
    [
        ("show", ["--json"]),
        ("show", ["--attempts-before", "9"]),
        ("explain", ["--json"]),
        ("reprioritize", ["7"]),
        ("cancel", []),
        ("wait", ["--timeout", "0.01"]),
    ],
)
def test_unique_prefix_is_the_job(
    env: dict[str, str], made: JobFactory, command: str, more: list[str]
) -> None:
    for prefix in ("019a93c4-1235", "019A93C41235", str(OTHER)[:-1]):
        found = invoke("jobs", command, prefix, *more, env=env)
        assert "several" not in found.stderr
        assert "begins with" not in found.stderr
        if command in ("reprioritize", "cancel", "wait"):
            assert str(OTHER) in found.stderr
        elif "--json" in more:
            assert json.loads(found.stdout)["id"] == str(OTHER)


def test_short_form_of_the_dashboard_is_accepted(env: dict[str, str], made: JobFactory) -> None:
    twin = UUID(f"{str(ONE)[:-1]}c")
    made.conn.execute("select * from laneway.submit('greet', '{}', id => %s::uuid)", [twin])
    found = invoke("jobs", "show", short_form(twin), "--json", env=env)
    assert json.loads(found.stdout)["id"] == str(twin)
    assert invoke("jobs", "cancel", short_form(ONE), env=env).exit_code == 2  # as TWIN ends


def test_every_verb_takes_a_prefix(env: dict[str, str], made: JobFactory) -> None:
    assert invoke("jobs", "cancel", "019a93c4-1235", env=env).exit_code == 0
    assert invoke("jobs", "retry", "019a93c4-1235", env=env).exit_code == 0
    assert invoke("jobs", "cancel", "019a93c4-1235", env=env).exit_code == 0
    assert invoke("jobs", "watch", "019a93c4-1235", env=env).exit_code == 1
    assert invoke("jobs", "approve", "019a93c4-1235", env=env).exit_code == 4
    assert invoke("jobs", "reject", "019a93c4-1235", "--reason", "no", env=env).exit_code == 4
    assert invoke("jobs", "delete", "019a93c4-1235", "--yes", env=env).exit_code == 0
    assert invoke("jobs", "show", "019a93c4-1235", env=env).exit_code == 3


def test_ambiguous_prefix_lists_candidates_and_exits_2(
    env: dict[str, str], made: JobFactory
) -> None:
    found = invoke("jobs", "show", "019a93c4-1234", env=env)
    assert (found.exit_code, found.stdout) == (2, "")
    assert found.stderr.splitlines() == [
        f"  {ONE} greet queued",
        f"  {TWIN} greet queued",
        "laneway: ID: several job ids begin with 019a93c4-1234; write more digits of one",
    ]
    several = invoke("jobs", "cancel", "019a93c4-1234", OTHER, env=env)
    assert several.exit_code == 2
    assert f"job {OTHER}: cancelled" in several.stderr
    assert f"job {ONE}" not in several.stderr


def test_unknown_prefix_exits_3(env: dict[str, str], made: JobFactory) -> None:
    found = invoke("jobs", "show", "ffff", env=env)
    assert (found.exit_code, found.stdout) == (3, "")
    assert found.stderr == "laneway: no job id begins with ffff\n"


async def test_server_without_prefixes_asks_for_the_full_id() -> None:
    script = ScriptedServer(problem(422, "invalid_input", "path.job_id: must be a UUID"))
    async with AsyncClient("http://localhost", "lw_x", transport=script) as client:
        with pytest.raises(Refused, match="give the full id"):
            await resolve(ServerBackend(client), parse_id("019a93c4"))


def test_ids_of_a_table_on_a_terminal_are_accepted_back(dsn: str, made: JobFactory) -> None:
    with terminal(dsn, "--no-color", "jobs", "ls") as shown:
        assert shown.wait() == 0
    ids = re.findall(r"^019a\S+", shown.seen, re.MULTILINE)
    assert ids == ["019a93c4-1235", "019a93c4-1234-7abd", "019a93c4-1234-7abc"]
    for short, job_id in zip(ids, (OTHER, TWIN, ONE), strict=True):
        found = invoke("jobs", "show", short, "--json", env={"LANEWAY_DATABASE_URL": dsn})
        assert json.loads(found.stdout)["id"] == str(job_id)
