"""One table of rules for submits: every interface refuses and accepts the same."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import psycopg
import pytest
from fastapi import FastAPI
from mcp import Client
from mcp.server import MCPServer

from laneway.client import Client as Laneway
from laneway.client import NewJobSpec
from laneway.config.settings import Settings
from laneway.control import schedules
from laneway.errors import InvalidInput
from laneway.http import AsyncClient
from laneway.mcp.server import make_server
from laneway.store.database import Database
from tests.api.conftest import Ask, People

MEGABYTE = 1024 * 1024


def nested(levels: int) -> Any:
    """A payload with this many levels, itself the first."""
    inner: Any = []
    for _ in range(levels - 2):
        inner = [inner]
    return {"x": inner}


def in_years(years: int) -> str:
    return (datetime.now(UTC) + timedelta(days=366 * years)).isoformat()


# Options of a submit, and the field that the refusal names.
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "65 levels": ({"payload": nested(65)}, "payload"),
    "65 levels and more": ({"payload": {"a": "x" * 500, "b": [1, nested(65)]}}, "payload"),
    "309 digits": ({"payload": {"n": [10**308]}}, "payload"),
    "309 digits, negative": ({"payload": {"n": -(10**308)}}, "payload"),
    "a float of 309 digits": ({"payload": {"n": 1e308}}, "payload"),
    "more than a megabyte": ({"payload": {"x": "x" * MEGABYTE}}, "payload"),
    "NUL": ({"payload": {"x": "a\0"}}, "payload"),
    "NUL in a key": ({"payload": {"a\0": 1}}, "payload"),
    "half a surrogate": ({"payload": {"x": "\ud800"}}, "payload"),
    "no job type": ({"job_type": ""}, "job_type"),
    "blank job type": ({"job_type": " a"}, "job_type"),
    "bidi in the job type": ({"job_type": "a\u202eb"}, "job_type"),
    "long job type": ({"job_type": "é" * 65}, "job_type"),
    "empty unique_key": ({"unique_key": ""}, "unique_key"),
    "long unique_key": ({"unique_key": "é" * 257}, "unique_key"),
    "empty concurrency_key": ({"concurrency_key": ""}, "concurrency_key"),
    "long concurrency_key": ({"concurrency_key": "é" * 257}, "concurrency_key"),
    "no workspace": ({"workspace": ""}, "workspace"),
    "long workspace": ({"workspace": "é" * 65}, "workspace"),
    "65 tags": ({"tags": [f"t{n}" for n in range(65)]}, "tags"),
    "empty tag": ({"tags": ["a", ""]}, "tags"),
    "long tag": ({"tags": ["é" * 65]}, "tags"),
    "priority too high": ({"priority": 32768}, "priority"),
    "priority too low": ({"priority": -32769}, "priority"),
    "negative max_retries": ({"max_retries": -1}, "max_retries"),
    "many max_retries": ({"max_retries": 32768}, "max_retries"),
    "run_at in 110 years": ({"run_at": in_years(110)}, "run_at"),
    "run_at 110 years ago": ({"run_at": in_years(-110)}, "run_at"),
    "negative delay": ({"delay": -1}, "delay"),
    "delay of 110 years": ({"delay": 110 * 366 * 86400}, "delay"),
    "negative unique_for": ({"unique_for": -1}, "unique_for"),
    "unique_for of two years": ({"unique_for": 2 * 366 * 86400}, "unique_for"),
    "no name in unique_by": ({"unique_by": []}, "unique_by"),
    "65 names in unique_by": ({"unique_by": [f"a{n}" for n in range(65)]}, "unique_by"),
    "delay and run_at": ({"delay": 1, "run_at": in_years(1)}, "delay"),
}
GOOD: dict[str, dict[str, Any]] = {
    "plain": {},
    "64 levels": {"payload": nested(64)},
    "308 digits": {"payload": {"n": [10**308 - 1, -(10**308 - 1)]}},
    "digits that are text": {"payload": {"n": "1" * 5000}},
    "brackets that are text": {"payload": {"n": "[{" * 500}},
    "nearly a megabyte": {"payload": {"x": "x" * (MEGABYTE - 100)}},
    "names": {"job_type": "größe 1/2", "workspace": "w" * 128, "tags": ["é" * 64] * 64},
    "keys": {"unique_key": "k" * 512, "concurrency_key": "c" * 512},
    "unique for a period": {"payload": {"n": 1}, "unique_for": 60},
    "unique by an argument": {"payload": {"n": 2}, "unique_by": ["n"]},
    "numbers": {"priority": -32768, "max_retries": 32767, "delay": 100 * 365 * 86400},
}
Submit = Callable[[dict[str, Any]], Awaitable[None]]
SCHEDULED = {
    "job_type",
    "payload",
    "concurrency_key",
    "workspace",
    "tags",
    "priority",
    "max_retries",
}


class Refused(Exception):
    """An interface refused the submit."""


class Interfaces:
    """Every way to submit a job; each raises Refused with the message."""

    def __init__(
        self, dsn: str, database: Database, ask: Ask, app: FastAPI, people: People
    ) -> None:
        self._dsn, self._ask, self._app = dsn, ask, app
        self._client = Laneway(lambda: database, database.settings)
        self._admin = people.new("ann", "platform_admin")
        self._mcp: MCPServer[Any] | None = None

    async def close(self) -> None:
        """Let its wake-ups finish before the database is closed."""
        await self._client.close()

    async def python(self, given: dict[str, Any]) -> None:
        try:
            await self._client.submit(**_python(given))
        except InvalidInput as error:
            raise Refused(error) from None

    async def batch(self, given: dict[str, Any]) -> None:
        try:
            await self._client.submit_many([NewJobSpec("plain"), NewJobSpec(**_python(given))])
        except InvalidInput as error:
            raise Refused(error if error.field.startswith("jobs[1].") else "no place") from None

    async def own_connection(self, given: dict[str, Any]) -> None:
        async with await psycopg.AsyncConnection.connect(self._dsn) as conn:
            try:
                await self._client.submit(**_python(given), conn=conn)
            except InvalidInput as error:
                raise Refused(error) from None

    async def sql(self, given: dict[str, Any]) -> None:
        casts = {"payload": "jsonb", "run_at": "timestamptz", "tags": "text[]"}
        values = {**given, "payload": json.dumps(given["payload"])}
        for name in values.keys() & {"delay", "unique_for"}:
            values[name] = timedelta(seconds=values[name])
        words = ", ".join(
            f"{name} => %({name})s::{casts.get(name, _TYPES.get(type(value), 'text'))}"
            for name, value in values.items()
        )
        await self._execute(f"select laneway.submit({words})", values)

    async def sql_batch(self, given: dict[str, Any]) -> None:
        kind = {name: value for name, value in given.items() if name != "payload"}
        kinds = [{"job_type": "plain"}, kind]
        values = {"payloads": json.dumps([{}, given["payload"]]), "kinds": json.dumps(kinds)}
        try:
            await self._execute(_SUBMIT_BATCH, values)
        except Refused as refusal:
            raise Refused(_of_second(str(refusal))) from None

    async def http(self, given: dict[str, Any]) -> None:
        self._check(await self._post("/jobs", given))

    async def http_batch(self, given: dict[str, Any]) -> None:
        self._check(await self._post("/jobs/batch", {"jobs": [given]}))

    async def mcp(self, given: dict[str, Any]) -> None:
        if self._mcp is None:
            self._mcp = make_server(self._api, is_writing=True)
        async with Client(self._mcp) as client:
            answer: Any = await client.call_tool("submit_job", given)
        if answer.is_error:
            raise Refused(answer.content[0].text)

    @asynccontextmanager
    async def _api(self, request: Any) -> AsyncIterator[AsyncClient]:
        transport = httpx2.ASGITransport(self._app)
        async with AsyncClient("http://localhost", self._admin.token, transport=transport) as api:
            yield api

    async def http_schedule(self, given: dict[str, Any]) -> None:
        self._check(await self._post("/admin/schedules", {"name": "n", "cron": "@daily", **given}))

    async def sql_schedule(self, given: dict[str, Any]) -> None:
        values = {"name": "n", "cron": "@daily", **given, "payload": json.dumps(given["payload"])}
        names, places = ", ".join(values), ", ".join(f"%({name})s" for name in values)
        await self._execute(f"insert into laneway.schedules ({names}) values ({places})", values)

    async def _post(self, path: str, body: dict[str, Any]) -> httpx2.Response:
        headers = {"Content-Type": "application/json"}
        return await self._ask(
            self._admin, "POST", path, content=json.dumps(body).encode(), headers=headers
        )

    def _check(self, answer: httpx2.Response) -> None:
        if answer.status_code >= 400:
            assert answer.status_code in (413, 422), answer.text
            raise Refused(answer.text)

    async def _execute(self, text: str, values: dict[str, Any]) -> None:
        async with await psycopg.AsyncConnection.connect(self._dsn) as conn:
            try:
                await conn.execute(text.encode(), values)
            except psycopg.DatabaseError as error:
                raise Refused(error) from None


_SUBMIT_BATCH = """
select laneway.submit_batch(array[gen_random_uuid(), gen_random_uuid()], %(payloads)s::jsonb,
                            '{0,1}', %(kinds)s::jsonb)
"""


def _of_second(refusal: str) -> str:
    is_placed = refusal.startswith("jobs[1].") or "Unicode" in refusal
    return refusal if is_placed else f"no place: {refusal[:3]}"


_TYPES = {int: "integer", timedelta: "interval", list: "text[]"}


def _python(given: dict[str, Any]) -> dict[str, Any]:
    at = given.get("run_at")
    return {**given, "run_at": datetime.fromisoformat(at)} if at else given


SUBMITS = ("python", "batch", "own_connection", "sql", "sql_batch", "http", "http_batch", "mcp")
SCHEDULES = ("http_schedule", "sql_schedule")
# Fields of the tool for assistants.
MCP = {
    "job_type", "payload", "priority", "delay", "unique_key", "unique_for", "workspace", "tags",
}  # fmt: skip
# Values that an interface cannot express, or treats as "not given".
UNSAID = {("mcp", "empty unique_key"), ("mcp", "no workspace"), ("mcp", "half a surrogate")}


def takes(interface: str, given: dict[str, Any]) -> bool:
    if interface in SCHEDULES:
        return given.keys() <= SCHEDULED
    return interface != "mcp" or given.keys() <= MCP


@pytest.fixture
async def interfaces(
    dsn: str, database: Database, ask: Ask, app: FastAPI, people: People
) -> AsyncIterator[Interfaces]:
    made = Interfaces(dsn, database, ask, app, people)
    yield made
    await made.close()


@pytest.mark.parametrize("interface", [*SUBMITS, *SCHEDULES])
async def test_every_interface_refuses_invalid_submit(
    interfaces: Interfaces, interface: str, conn: psycopg.Connection[Any]
) -> None:
    submit: Submit = getattr(interfaces, interface)
    wrong = []
    for name, (given, field) in BAD.items():
        if not takes(interface, given) or (interface, name) in UNSAID:
            continue
        try:
            await submit({"job_type": "plain", "payload": {}, **given})
        except Refused as refusal:
            # PostgreSQL itself refuses such JSON, before any function sees it.
            if field not in str(refusal) and "Unicode" not in str(refusal):
                wrong.append(f"{name}: {refusal}")
        else:
            wrong.append(f"{name}: taken")
    assert wrong == []
    stored = conn.execute(
        "select (select count(*) from laneway.jobs) + (select count(*) from laneway.schedules)"
    ).fetchone()
    assert stored == (0,)


@pytest.mark.parametrize("interface", [*SUBMITS, *SCHEDULES])
async def test_every_interface_accepts_valid_submit(
    interfaces: Interfaces, interface: str, conn: psycopg.Connection[Any]
) -> None:
    submit: Submit = getattr(interfaces, interface)
    for given in GOOD.values():
        if takes(interface, given):
            await submit({"job_type": "plain", "payload": {}, **given})
            conn.execute("delete from laneway.schedules")


@pytest.mark.parametrize(
    "kind, field",
    [
        ({"delay": 1e12}, "delay"),
        ({"delay": 1e300}, "delay"),
        ({"delay": "NaN"}, "delay"),
        ({"max_age": -5}, "max_age"),
        ({"max_age": "NaN"}, "max_age"),
        ({"unique_for": "NaN"}, "unique_for"),
        ({"unique_by": [None]}, "unique_by"),
        ({"run_at": "infinity"}, "run_at"),
        ({"run_at": "-infinity"}, "run_at"),
        ({"run_at": "2030-01-01Z", "delay": 1}, "delay"),
        ({"tags": [None, ""]}, "tags"),
        ({"unique_key": "k" * 2000}, "unique_key"),
        ({"concurrency_key": ""}, "concurrency_key"),
        ({"traceparent": "t" * 257}, "traceparent"),
        ({"created_by": " ann"}, "created_by"),
        ({"needs": "luck"}, "needs"),
        ({"job_type": "   "}, "job_type"),
        ({"job_type": None}, "job_type"),
    ],
)
async def test_sql_batch_refuses_settings_that_only_sql_can_send(
    conn: psycopg.Connection[Any], kind: dict[str, Any], field: str
) -> None:
    kinds = json.dumps([{"job_type": "plain"}, {"job_type": "plain", **kind}])
    with pytest.raises(psycopg.Error) as caught:
        conn.execute(_SUBMIT_BATCH, {"payloads": "[{}, {}]", "kinds": kinds})
    assert (caught.value.sqlstate, str(caught.value).split(":")[0]) == ("LW001", f"jobs[1].{field}")
    conn.rollback()


@pytest.mark.parametrize(
    "ids, payloads, kind_of, message",
    [
        ("array[gen_random_uuid()]", "'[{}]'", "array[null]::integer[]", "jobs[0].kind"),
        ("array[gen_random_uuid()]", "'[{}]'", "array[1]", "jobs[0].kind"),
        ("array[gen_random_uuid()]", "'[{}]'", "array[-1]", "jobs[0].kind"),
        ("array[gen_random_uuid()]", "null", "array[0]", "jobs: each needs"),
        ("array[null]::uuid[]", "'[{}]'", "array[0]", "jobs: each needs"),
        ("array[gen_random_uuid()]", "'[{}]'", "null", "jobs: each needs"),
    ],
)
async def test_sql_batch_refuses_jobs_that_it_could_not_store(
    conn: psycopg.Connection[Any], ids: str, payloads: str, kind_of: str, message: str
) -> None:
    call = f'select laneway.submit_batch({ids}, {payloads}, {kind_of}, \'[{{"job_type": "a"}}]\')'
    with pytest.raises(psycopg.Error) as caught:
        conn.execute(call.encode())
    assert (caught.value.sqlstate, str(caught.value)[: len(message)]) == ("LW001", message)
    conn.rollback()


async def test_raised_limits_hold_for_schedules_too(dsn: str) -> None:
    database = Database(dsn, Settings.load(database_url=dsn, max_payload_depth=100))
    change = {"job_type": "a", "cron": "@daily", "payload": nested(90)}
    try:
        await schedules.put(database, "deep", change, by="ann")
    finally:
        await database.close()
