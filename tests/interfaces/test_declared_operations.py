"""Every interface has every declared operation, with exactly the rules of the domain."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_type_hints

import psycopg
import pytest
from annotated_types import Interval
from fastapi import FastAPI

from laneway.api.routes.description import describe
from laneway.control.operators import WORK
from laneway.domain.annotations import find_mark
from laneway.domain.lane import LaneSettings
from laneway.http.verbs import Verbs
from laneway.mcp.server import always, make_server
from laneway.mcp.tools import TOOLS
from laneway.operations.catalog import DECLARED
from tests.api.conftest import Ask, People
from tests.cli.conftest import Run
from tests.cli.test_reference import COMMANDS

SOURCE = Path(__file__).resolve().parents[2] / "src" / "laneway"
RANGES: dict[str, Interval] = {
    name: bounds
    for name, hint in get_type_hints(LaneSettings, include_extras=True).items()
    if (bounds := find_mark(hint, Interval)) is not None
}


def test_every_operation_has_route_method_work_and_command(app: FastAPI) -> None:
    served = {
        each["operationId"]: (method.upper(), path)
        for path, methods in describe(app)["paths"].items()
        for method, each in methods.items()
    }
    assert DECLARED
    for name, operation in DECLARED.items():
        assert served[name] == (operation.method, operation.path)
        assert hasattr(Verbs, name)
        assert operation in WORK
        assert operation.command is None or f"laneway {operation.command}" in COMMANDS


def test_database_has_the_ranges_of_the_domain(conn: psycopg.Connection[Any]) -> None:
    assert len(RANGES) == 4
    for name, bounds in RANGES.items():
        low, high = int(str(bounds.ge)), int(str(bounds.le))
        change = f"update laneway.worker_lanes set {name} = %s where name = 'system'"
        for fitting in (low, high):
            conn.execute(change, [fitting])
        for beyond in (low - 1, high + 1):
            with pytest.raises(psycopg.errors.CheckViolation):
                conn.execute(change, [beyond])


def test_requests_have_the_ranges_of_the_domain_and_responses_none(app: FastAPI) -> None:
    schemas = describe(app)["components"]["schemas"]
    for name, bounds in RANGES.items():
        expected = {"minimum": bounds.ge, "maximum": bounds.le}
        for model in ("NewLane", "LaneChange"):
            assert _range_of(schemas[model]["properties"][name]) == expected
        for model in ("LaneOut", "LaneStatusOut", "LaneDetailOut", "TunedLaneOut"):
            assert _range_of(schemas[model]["properties"][name]) == {}


async def test_assistants_have_the_ranges_of_the_domain() -> None:
    server = make_server(always(None), is_writing=True)  # type: ignore[arg-type]
    tools = {tool.name: tool for tool in await super(type(server), server).list_tools()}
    for name, bounds in RANGES.items():
        taken = tools["tune_lane"].input_schema["properties"][name]
        assert _range_of(taken) == {"minimum": bounds.ge, "maximum": bounds.le}
    assert TOOLS["tune_lane"].permission == "workers:manage"


def _range_of(schema: dict[str, Any]) -> dict[str, Any]:
    found = next((each for each in schema.get("anyOf", []) if "type" in each), schema)
    return {name: found[name] for name in ("minimum", "maximum") if name in found}


def test_help_names_the_ranges_of_the_domain(run: Run) -> None:
    for command in ("create", "set"):
        text = " ".join(run("lanes", command, "--help").stdout.split())
        for name, bounds in RANGES.items():
            assert f"--{name.replace('_', '-')} " in text
            assert f"{bounds.ge} to {bounds.le}" in text


async def test_server_shows_a_lane_that_a_newer_version_wrote(
    ask: Ask, people: People, conn: psycopg.Connection[Any]
) -> None:
    conn.execute("alter table laneway.worker_lanes drop constraint worker_lanes_max_slots_check")
    conn.execute("update laneway.worker_lanes set max_slots = 20000 where name = 'system'")
    olga = people.new("olga", "operator")
    for path in ("/admin/workers/lanes/system", "/admin/workers/lanes", "/admin/workers/status"):
        answer = await ask(olga, "GET", path)
        assert (answer.status_code, "20000" in answer.text) == (200, True), path
    tuned = await ask(olga, "PATCH", "/admin/workers/lanes/system", json={"lease_seconds": 20})
    assert (tuned.status_code, tuned.json()["max_slots"]) == (200, 20000)


# Modules that use the meaning of a setting, or show one in an example; others read the declaration.
USES = {
    "cli/tables.py",
    "api/routes/metrics.py",
    "control/circles.py",
    "control/explain.py",
    "control/resources.py",
    "control/start_estimate.py",
}


def test_interfaces_name_no_setting_of_lane() -> None:
    """A new column of a lane needs a migration, tune_lane.sql and domain/lane.py."""
    named = re.compile(rf"\b({'|'.join(RANGES)})\b")
    interfaces = ("api", "cli", "http", "mcp", "operations", "control")
    found = {
        str(path.relative_to(SOURCE))
        for name in interfaces
        for path in (SOURCE / name).rglob("*.py")
        if named.search(path.read_text("utf-8"))
    }
    assert found <= USES


def test_interfaces_name_no_field_of_job_that_they_do_not_use() -> None:
    """A new column of a job needs a migration, SQL and these modules; JSON and schemas follow."""
    found = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if "last_progress_at" in path.read_text("utf-8")
    }
    assert found == {"domain/job.py", "domain/event.py", "store/jobs.py"}
