"""Bounds of requests: row 11 of the security checklist (docs/reference/security.md)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any
from uuid import UUID, uuid4

import httpx2
import psycopg
import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from laneway.api.app import make_app
from laneway.api.http.bodies import read_jobs
from laneway.api.http.read_slots import MAX_QUEUED, ReadSlots
from laneway.api.models.jobs import NewJobs
from laneway.api.routes.description import describe
from laneway.config.settings import Settings
from laneway.control.throttle import Throttle
from laneway.domain.payload import PayloadLimits
from laneway.errors import InvalidInput, RateLimited
from laneway.store.database import Database
from laneway.store.statement import Statement, scalar
from tests.api.conftest import Ask, People
from tests.support.job_factory import JobFactory

MIB = 1024 * 1024


@pytest.fixture
async def small(dsn: str) -> AsyncIterator[httpx2.AsyncClient]:
    """A server with short deadlines."""
    settings = Settings.load(
        database_url=dsn, requests_per_second=3, statement_timeout=3.0, max_batch_bytes=20_000
    )
    database = Database(dsn, settings, role="tests api")
    app = make_app(settings, database)
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
        yield client
    await app.state.close()
    await database.close()


@pytest.mark.usefixtures("still_limits")
async def test_throttled_token_gets_retry_after(small: httpx2.AsyncClient, people: People) -> None:
    ann, bob = people.new("ann", "viewer"), people.new("bob", "viewer")
    answers = [await small.get("/me", headers=ann.headers) for _ in range(30)]
    refused = [answer for answer in answers if answer.status_code != 200]
    assert 6 <= len(answers) - len(refused) < 30
    for answer in refused:
        assert (answer.status_code, answer.json()["code"]) == (429, "rate_limited")
        assert int(answer.headers["retry-after"]) >= 1
    # It delays neither another token nor health checks.
    assert (await small.get("/me", headers=bob.headers)).status_code == 200
    assert (await small.get("/healthz")).status_code == 200


async def test_limit_is_off_where_it_is_zero(ask: Ask, app: FastAPI, people: People) -> None:
    app.state.throttle = Throttle(Settings.load(requests_per_second=0))
    ann = people.new("ann")
    assert {(await ask(ann, "GET", "/me")).status_code for _ in range(20)} == {200}


async def test_every_authenticated_route_documents_rate_limit(app: FastAPI) -> None:
    for path, operations in describe(app)["paths"].items():
        for operation in operations.values():
            if operation.get("security"):
                response = operation["responses"]["429"]
                assert "Retry-After" in response["headers"], path


async def test_no_page_is_longer_than_200_and_pages_are_only_found_by_cursors(
    ask: Ask, app: FastAPI, people: People, conn: psycopg.Connection[Any]
) -> None:
    admin = people.new("admin", "platform_admin")
    conn.execute(
        "insert into laneway.schedules (name, job_type, cron) values ('x', 't', '0 3 * * *')"
    )
    lists = 0
    for path, operations in describe(app)["paths"].items():
        taken = {one["name"]: one for one in operations.get("get", {}).get("parameters", [])}
        assert not {"offset", "page", "skip"} & taken.keys(), path
        if "limit" not in taken:
            continue
        lists += 1
        # A graph is read in larger pages: its edges make sense only together.
        most = 1000 if path == "/flows/{flow_id}" else 200
        assert taken["limit"]["schema"]["maximum"] <= most
        assert "cursor" in taken, path
        target = path.replace("{name}", "system" if "lanes" in path else "x")
        target = target.replace("{job_id}", str(uuid4()))
        target = target.replace("{flow_id}", str(uuid4()))
        for limit in (0, most + 1, 10**30, "x"):
            answer = await ask(admin, "GET", target, params={"limit": limit})
            assert answer.status_code == 422, (path, limit)
            assert "limit" in answer.json()["errors"][0]["field"]
        for cursor in ("x' or 1=1", "9" * 600, "-1; drop table laneway.jobs"):
            answer = await ask(admin, "GET", target, params={"cursor": cursor})
            assert answer.status_code in (200, 404, 422), (path, cursor)
    assert lists >= 8


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


HOSTILE: dict[str, tuple[str, str]] = {
    "a payload of more than a mebibyte": (json.dumps({"a": "x" * MIB}), "bytes"),
    "a payload deeper than 64": (nested(65), "64"),
    "a payload deeper than Python can go": (nested(100_000), ""),
    "a number of more than 308 digits": ('{"a": ' + "9" * 309 + "}", "308"),
    "a number of more digits than Python reads": ('{"a": ' + "9" * 5000 + "}", ""),
    "a number that is none": ('{"a": NaN}', ""),
    "an endless number": ('{"a": -Infinity}', ""),
    "a NUL": ('{"a": "\\u0000"}', "NUL"),
    "half a character": ('{"a": "\\ud800"}', ""),
}


@pytest.mark.parametrize("case", HOSTILE)
async def test_payload_over_a_limit_is_refused_by_name(ask: Ask, people: People, case: str) -> None:
    ann = people.new("ann", "submitter")
    payload, rule = HOSTILE[case]
    one = '{"job_type": "greet", "payload": ' + payload + "}"
    for path, body in (("/jobs", one), ("/jobs/batch", '{"jobs": [' + one + "]}")):
        answer = await ask(
            ann, "POST", path, content=body, headers={"Content-Type": "application/json"}
        )
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input"), case
        (error,) = answer.json()["errors"]
        assert error["field"]
        assert rule in error["rule"], (case, error)


async def test_keys_and_batches_over_their_limits_are_refused_by_name(
    ask: Ask, people: People
) -> None:
    ann = people.new("ann", "submitter")
    for field in ("unique_key", "concurrency_key"):
        for key, is_fine in (("k" * 512, True), ("k" * 513, False), ("é" * 257, False)):
            body = {"job_type": "greet", field: key}
            answer = await ask(ann, "POST", "/jobs", json=body)
            assert answer.status_code == (202 if is_fine else 422)
            if not is_fine:
                assert answer.json()["errors"][0]["field"] == field
                assert "512" in answer.json()["errors"][0]["rule"]
    many = {"jobs": [{"job_type": "greet"}] * 1001}
    answer = await ask(ann, "POST", "/jobs/batch", json=many)
    assert answer.status_code == 422
    assert "1000" in answer.json()["errors"][0]["rule"]


async def test_batch_of_too_many_bytes_is_413(small: httpx2.AsyncClient, people: People) -> None:
    ann = people.new("ann", "submitter")
    body = {"jobs": [{"job_type": "greet", "payload": {"a": "x" * 3000}}] * 7}
    answer = await small.post("/jobs/batch", json=body, headers=ann.headers)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert "20000" in answer.json()["detail"]


async def test_headers_and_queries_are_bounded(ask: Ask, people: People) -> None:
    ann = people.new("ann", "platform_admin")
    long = {"Idempotency-Key": "k" * 256}
    assert (await ask(ann, "POST", "/jobs", json={}, headers=long)).status_code == 422
    for params in ({"q": "x" * 5000}, {"tag": "x" * 5000}, {"worker": "x" * 5000}):
        assert (await ask(ann, "GET", "/jobs", params=params)).status_code == 422, params
    answer = await ask(None, "GET", "/login", params={"link": "x" * 5000})
    assert answer.status_code == 422


async def test_no_statement_of_the_server_runs_longer_than_its_limit(
    small: httpx2.AsyncClient, people: People, conn: psycopg.Connection[Any], dsn: str
) -> None:
    ann = people.new("ann", "viewer")
    with conn.transaction():
        conn.execute("lock table laneway.jobs in access exclusive mode")
        answer = await small.get("/jobs", headers=ann.headers)
    assert (answer.status_code, answer.json()["code"]) == (503, "database_unavailable")
    assert answer.headers["retry-after"] == "1"
    assert "timeout" not in answer.text
    assert (await small.get("/jobs", headers=ann.headers)).status_code == 200

    class Show(Statement[str]):
        @property
        def text(self) -> str:
            return "select current_setting('statement_timeout')"

    database = Database(dsn, Settings.load(database_url=dsn), role="tests api")
    assert await database.run(Show("none", scalar)) == "30s"
    await database.close()


# -- bodies -----------------------------------------------------------------------------------


async def test_body_limit_follows_the_route(ask: Ask, people: People) -> None:
    admin = people.new("admin", "platform_admin")
    small = {"/jobs/bulk", "/admin/principals", "/admin/roles", "/admin/grants"}
    for path in sorted(small):
        answer = await ask(admin, "POST", path, json={"x": "x" * 70_000})
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large"), path
    for path, most in (("/jobs", 4 * MIB), ("/jobs/batch", 17 * MIB)):
        answer = await ask(admin, "POST", path, content=b" " * most)
        assert answer.status_code == 413, path


async def test_escaped_payload_of_a_mebibyte_is_accepted(ask: Ask, people: People) -> None:
    ann = people.new("ann", "submitter")
    payload = {"a": "ж" * (MIB // 2 - 100)}
    body = json.dumps({"job_type": "greet", "payload": payload})
    assert len(body) > 2 * MIB
    headers = {"Content-Type": "application/json"}
    answer = await ask(ann, "POST", "/jobs", content=body, headers=headers)
    assert answer.status_code == 202
    assert answer.json()["payload"] == payload
    answer = await ask(
        ann, "POST", "/jobs/batch", content=f'{{"jobs":[{body}, {body}]}}', headers=headers
    )
    assert (answer.status_code, len(answer.json()["items"])) == (202, 2)


async def test_few_errors_are_made_of_many_mistakes(ask: Ask, people: People) -> None:
    admin = people.new("admin", "platform_admin")
    unknown = {f"k{number}": 1 for number in range(4000)}
    for path in ("/jobs", "/jobs/bulk", "/admin/principals"):
        answer = await ask(admin, "POST", path, json=unknown)
        assert (answer.status_code, len(answer.json()["errors"])) == (422, 20), path
        assert answer.json()["errors"][-1]["field"].startswith("body.k")
    with pytest.raises(ValidationError) as wrong:
        NewJobs.model_validate({"jobs": [{"job_type": "x", **unknown, "tags": [1] * 20}] * 900})
    assert wrong.value.error_count() <= 25


async def test_nothing_of_a_bulk_order_is_read_without_any_verb(ask: Ask, people: People) -> None:
    answer = await ask(people.new("bo"), "POST", "/jobs/bulk", content=b"{")
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.lists(st.dictionaries(st.sampled_from(["job_type", "tags", "x"]), _values) | _values))
def test_large_batch_reads_as_json(jobs: list[Any]) -> None:
    """For any elements, the reader of large bodies agrees with json.loads."""
    limits = PayloadLimits()
    pad = "y" * 70_000
    for indent in (None, 1):
        text = json.dumps({"jobs": [*jobs, pad], "more": 1}, indent=indent)
        assert asyncio.run(read_jobs(text.encode(), limits)) == json.loads(text)


@pytest.mark.parametrize(
    "text",
    ['{"jobs": [', '{"jobs": [1,]}', '{"jobs": [1 2]}', '{"jobs" 1}', "{1: 2}", '{"a": 1,}',
     '{"jobs": []} x', '{"jobs": [1]', '{"a": tru}', "[1]", '"x"', ""],
)  # fmt: skip
def test_large_invalid_json_is_refused(text: str) -> None:
    with pytest.raises((json.JSONDecodeError, InvalidInput)):
        asyncio.run(read_jobs((" " * 70_000 + text).encode(), PayloadLimits()))


def test_no_more_of_a_body_is_read_than_a_payload_may_have() -> None:
    limits = PayloadLimits(max_bytes=100_000, batch_jobs=3)
    for text in ("[" + "1," * 400_000, "[" * 400_000, '{"a":' * 100_000, '"' + "x" * 400_000):
        for body in (f'{{"jobs":[{{"payload":{text}', f'{{"payload":{text}', f'{{"z":{text}'):
            with pytest.raises((InvalidInput, RecursionError)):
                asyncio.run(read_jobs(body.encode(), limits))
    with pytest.raises(InvalidInput, match="at most 3 jobs"):
        asyncio.run(read_jobs(b'{"jobs":[' + b"1," * 100_000 + b"1]}", limits))


# -- expensive reads --------------------------------------------------------------------------


async def test_reads_of_one_principal_leave_room_for_others() -> None:
    slots, ann, bob = ReadSlots(2), uuid4(), uuid4()
    going = asyncio.Event()
    at_once = 0

    async def read(who: UUID) -> int:
        nonlocal at_once
        async with slots.hold(who):
            at_once += 1
            most = at_once
            await going.wait()
            at_once -= 1
            return most

    reads = [asyncio.create_task(read(ann)) for _ in range(2 + MAX_QUEUED)]
    await asyncio.sleep(0)
    with pytest.raises(RateLimited):
        await read(ann)
    other = asyncio.create_task(read(bob))
    await asyncio.sleep(0)
    assert at_once == 3, "two of ann, one of bob"
    going.set()
    assert max(await asyncio.gather(*reads)) <= 3
    assert await other == 3


DRY_RUN = {"verb": "cancel", "all": True, "dry_run": True}
EXPENSIVE_READS: list[tuple[str, str, Any]] = [
    *(
        ("GET", f"/jobs{rest}", None)
        for rest in ("", "/counts", "/{job}/attempts", "/{job}/explain")
    ),
    *(
        ("GET", f"/admin/{rest}", None)
        for rest in ("workers/status", "audit", "changes", "database")
    ),
    *(("GET", f"/admin/{rest}", None) for rest in ("stats", "stats/failures", "schedules")),
    ("GET", "/admin/workers/lanes/default/history", None),
    ("GET", "/admin/limits/openai/history", None),
    ("GET", "/admin/schedules/nightly/history", None),
    ("GET", "/metrics", None),
    ("POST", "/jobs/bulk", DRY_RUN),
]


async def test_lists_are_read_in_the_line_of_their_caller(
    ask: Ask, app: FastAPI, people: People, factory: JobFactory
) -> None:
    ann, bob = (people.new(name, "platform_admin") for name in ("ann", "bob"))
    job_id = factory.submit()
    nightly = {"name": "nightly", "job_type": "greet", "cron": "0 3 * * *"}
    assert (await ask(bob, "POST", "/admin/schedules", json=nightly)).status_code == 201
    slots: ReadSlots = app.state.read_slots

    async def wait_in_line() -> None:
        async with slots.hold(ann.id):
            pass

    async with AsyncExitStack() as stack:
        for _ in range(app.state.settings.max_reads_per_principal):
            await stack.enter_async_context(slots.hold(ann.id))
        line = [asyncio.create_task(wait_in_line()) for _ in range(MAX_QUEUED)]
        await asyncio.sleep(0)
        for method, place, body in EXPENSIVE_READS:
            path = place.format(job=job_id)
            refused = await ask(ann, method, path, json=body)
            assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited"), path
            answer = await ask(bob, method, path, json=body)
            assert answer.status_code == 200, (path, answer.text)
    await asyncio.gather(*line)
    assert (await ask(ann, "GET", "/jobs")).status_code == 200
