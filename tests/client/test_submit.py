"""Single submits: stored rows, refusals, and the source of the checks."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import psycopg
import pytest
from pydantic import BaseModel

from laneway.client import Client, NewJobSpec
from laneway.client.spec import JobFields
from laneway.config.settings import Settings
from laneway.domain.approval import Approval
from laneway.domain.arguments import Arguments
from laneway.domain.job import Job
from laneway.domain.job_type_policy import TypeRecord
from laneway.domain.limit import Limit
from laneway.domain.retry import RetryPolicy
from laneway.domain.states import Status
from laneway.errors import DatabaseUnavailable, InvalidInput
from laneway.store import database, workers
from laneway.store.database import Database
from tests.client.connections import hang_up
from tests.support.store_client import StoreClient


async def ingest(
    ctx: object, path: str, pages: int = 10, ranges: list[int] | None = None
) -> None: ...


@dataclass(frozen=True)
class Handler:
    arguments: Arguments
    priority: int | None = None
    max_retries: int | None = None
    approval: Approval | None = None
    max_age_s: float | None = None
    unique_for_s: float | None = None
    unique_by: tuple[str, ...] | None = None


class Handlers(dict[str, Handler]):
    limits: Mapping[str, Limit] = {}

    @property
    def job_types(self) -> list[str]:
        return list(self)

    def needs(self, job_type: str) -> None:
        return None


class Model(BaseModel):
    path: str
    pages: int = 3


def publish(db: StoreClient, name: str, fn: Any = ingest, **more: Any) -> None:
    record = TypeRecord(
        name=name,
        arguments=json.dumps(Arguments.of(fn).schema()),
        lane=None,
        timeout_s=None,
        isolation="async",
        stale="heartbeat",
        retry=RetryPolicy(),
        **{"priority": 0, "max_retries": 3, **more},
    )
    db.run(workers.publish([record]))


def nothing_stored(db: StoreClient) -> bool:
    tables = ("jobs", "ready", "delayed", "job_keys")
    return all(db.one(f"select count(*) from laneway.{table}") == 0 for table in tables)


async def test_unknown_job_type_is_logged_once_with_the_nearest_name(
    client: Client, db: StoreClient, caplog: pytest.LogCaptureFixture
) -> None:
    handlers = Handlers(resize_image=Handler(Arguments.of(ingest)))
    own = Client(client.database, client.settings, handlers)
    publish(db, "transcode_video")
    for _ in range(2):
        await own.submit("transcode_vidoe", {})
        await own.submit_many([("resize_imgae", {}), ("transcode_vidoe", {})])
        await own.submit("transcode_video", {"path": "a"})
    await client.submit("never_heard_of", {})
    warned = [r.getMessage() for r in caplog.records if r.name == "laneway"]
    assert warned == [
        f"job type {name}: no worker has published it, and this application has no handler for it;"
        f" its jobs wait until a worker has one; did you mean {near}?"
        for name, near in (("transcode_vidoe", "transcode_video"), ("resize_imgae", "resize_image"))
    ]
    await own.close()


async def test_submitted_job_can_be_read_back(client: Client) -> None:
    handle = await client.submit(
        "t", {"a": [1, None]}, priority=4, tags=("x", "y"), workspace="w", created_by="me"
    )
    job = await client.get(handle.id)
    assert isinstance(job, Job)
    assert (job.id, job.job_type, job.status) == (handle.id, "t", Status.APPROVED)
    assert (job.payload, job.priority, job.tags) == ({"a": [1, None]}, 4, ("x", "y"))
    assert (job.workspace, job.created_by, job.max_retries) == ("w", "me", 3)
    assert job.attempts == ()
    assert await handle.get() == job
    assert await client.get(str(handle.id)) == job


@pytest.mark.parametrize(
    "payload, stored",
    [
        (None, {}),
        (Model(path="a"), {"path": "a", "pages": 3}),
        ((1, 2), [1, 2]),
        ("text", "text"),
        (5, 5),
        (False, False),
    ],
)
async def test_payload_is_any_json_value_or_a_model(
    client: Client, payload: object, stored: object
) -> None:
    handle = await client.submit("t", payload)
    assert (await handle.get()).payload == stored


async def test_delayed_job_waits_by_the_databases_clock(client: Client, db: StoreClient) -> None:
    for late in (
        await client.submit("t", delay=60),
        await client.submit("t", delay=timedelta(minutes=1)),
        await client.submit("t", run_at=datetime.now(UTC) + timedelta(minutes=1)),
    ):
        assert db.places(db.seq_of(late.id)) == ["delayed"]
    for due in (
        await client.submit("t", delay=0),
        await client.submit("t", run_at=datetime(2020, 1, 1, tzinfo=UTC)),
    ):
        assert db.places(db.seq_of(due.id)) == ["ready"]


async def test_live_unique_key_returns_first_job(client: Client, db: StoreClient) -> None:
    first = await client.submit("t", {"n": 1}, unique_key="k")
    second = await client.submit("t", {"n": 2}, unique_key="k")
    assert (second.id, second.duplicate) == (first.id, True)
    (claim,) = db.claimed()
    running = await client.submit("t", unique_key="k")
    assert (running.id, running.status) == (first.id, Status.RUNNING)
    db.settle(claim, "finish")
    third = await client.submit("t", unique_key="k")
    assert not third.duplicate
    assert third.id != first.id


HOSTILE: list[tuple[object, str, str]] = [
    ({"items": [{"name": "a\x00b"}]}, "payload.items[0].name", "NUL"),
    ({"a": {"b\x00": 1}}, 'payload.a["b\\\\u0000"]', "NUL"),
    ({"x": "\ud800"}, "payload.x", "surrogate"),
    ({"x": [math.nan]}, "payload.x[0]", "NaN"),
    ({"x": math.inf}, "payload.x", "Infinity"),
    ({"x": 10**400}, "payload.x", "digits"),
    ({"x": -(10**308)}, "payload.x", "digits"),
    ({"x": datetime(2020, 1, 1, tzinfo=UTC)}, "payload.x", "isoformat"),
    ({"x": {1, 2}}, "payload.x", "list"),
    ({"x": b"bytes"}, "payload.x", "base64"),
    ({1: "x"}, "payload", "keys must be text"),
    ({"x": "y" * 1024 * 1024}, "payload", "at most 1048576"),
    ({"x": object()}, "payload.x", "not a JSON value"),
]


@pytest.mark.parametrize("payload, place, rule", HOSTILE)
async def test_hostile_payload_is_refused_with_path_and_rule(
    client: Client, db: StoreClient, payload: object, place: str, rule: str
) -> None:
    with pytest.raises(InvalidInput) as one:
        await client.submit("t", payload)
    assert one.value.field == place
    assert rule in one.value.rule
    with pytest.raises(InvalidInput) as many:
        await client.submit_many([("t", {"fine": True}), ("t", payload)])
    assert (many.value.field, many.value.rule) == (f"jobs[1].{place}", one.value.rule)
    assert nothing_stored(db)


async def test_payload_nested_too_deeply_is_refused(client: Client, db: StoreClient) -> None:
    deep: list[Any] = []
    for _ in range(20_000):
        deep = [deep]
    with pytest.raises(InvalidInput, match="nested deeper than 64 levels"):
        await client.submit("t", deep)
    assert nothing_stored(db)


@pytest.mark.parametrize(
    "options, field",
    [
        ({"priority": 40_000}, "priority"),
        ({"priority": True}, "priority"),
        ({"max_retries": -1}, "max_retries"),
        ({"delay": -1}, "delay"),
        ({"delay": math.nan}, "delay"),
        ({"delay": 1, "run_at": datetime.now(UTC)}, "delay"),
        ({"run_at": datetime(2030, 1, 1)}, "run_at"),  # noqa: DTZ001
        ({"run_at": "tomorrow"}, "run_at"),
        ({"unique_key": ""}, "unique_key"),
        ({"unique_key": "k" * 513}, "unique_key"),
        ({"workspace": ""}, "workspace"),
        ({"tags": "ab"}, "tags"),
        ({"tags": ["a\x00"]}, "tags[0]"),
        ({"created_by": "\ud800"}, "created_by"),
    ],
)
async def test_wrong_options_are_refused_by_name(
    client: Client, db: StoreClient, options: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as one:
        await client.submit("t", **options)
    assert one.value.field == field
    with pytest.raises(InvalidInput) as many:
        await client.submit_many([cast("JobFields", {"job_type": "t", **options})])
    assert many.value.field == f"jobs[0].{field}"
    assert nothing_stored(db)


@pytest.mark.parametrize("job_type", ["", " t", "a\nb", "x" * 129, 5, None, ["t"]])
async def test_invalid_job_type_is_refused(client: Client, job_type: Any) -> None:
    with pytest.raises(InvalidInput, match="job_type"):
        await client.submit(job_type)
    with pytest.raises(InvalidInput, match=r"jobs\[1\]\.job_type"):
        await client.submit_many([("t",), (job_type, {})])


# -- arguments ----------------------------------------------------------------------------------

WRONG: list[tuple[object, str]] = [
    ({}, "payload.path: is required"),
    ({"path": 5}, "payload.path: must be"),
    ({"path": "a", "pages": "5"}, "payload.pages: must be"),
    ({"path": "a", "pags": 5}, "payload.pags: is not an argument"),
    ({"path": "a", "ranges": [1, "x"]}, "payload.ranges[1]: must be"),
    ([], "payload: must be"),
]


@pytest.mark.parametrize("payload, message", WRONG)
async def test_arguments_are_checked_by_the_local_handler(
    settings: Settings, client: Client, db: StoreClient, payload: object, message: str
) -> None:
    knowing = Client(client.database, settings, Handlers({"t": Handler(Arguments.of(ingest))}))
    with pytest.raises(InvalidInput) as refused:
        await knowing.submit("t", payload)
    assert str(refused.value).startswith(message)
    assert nothing_stored(db)
    await client.submit("t", payload)


@pytest.mark.parametrize("payload, message", WRONG)
async def test_arguments_are_checked_by_published_schema(
    client: Client, db: StoreClient, payload: object, message: str
) -> None:
    """A process without the handler's code refuses the same path."""
    publish(db, "published")
    with pytest.raises(InvalidInput) as refused:
        await client.submit("published", payload)
    assert str(refused.value).startswith(message.split(": ")[0] + ": ")
    with pytest.raises(InvalidInput, match=r"jobs\[0\]\.payload"):
        await client.submit_many([("published", payload)])
    with psycopg.connect(db.dsn) as conn, pytest.raises(InvalidInput):
        await client.submit("published", payload, conn=conn)
    assert nothing_stored(db)


async def test_right_arguments_pass_both_ways(
    settings: Settings, client: Client, db: StoreClient
) -> None:
    publish(db, "published")
    knowing = Client(client.database, settings, Handlers({"t": Handler(Arguments.of(ingest))}))
    for who, job_type in ((knowing, "t"), (client, "published")):
        for payload in ({"path": "a"}, Model(path="a"), {"path": "a", "ranges": (1, 2)}):
            await who.submit(job_type, payload)
            await who.submit_many([(job_type, payload)])
    await knowing.close()


async def test_published_job_types_are_read_again_after_five_seconds(
    client: Client, db: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr("laneway.client.catalog.time.monotonic", lambda: now)
    await client.submit("published", {"anything": 1})
    publish(db, "published")
    await client.submit("published", {"anything": 1})
    now += 5.0
    with pytest.raises(InvalidInput, match=r"payload\.anything"):
        await client.submit("published", {"path": "x", "anything": 1})


async def test_priority_and_retries_come_from_submit_then_handler_then_job_type(
    settings: Settings, client: Client, db: StoreClient
) -> None:
    publish(db, "published", priority=5, max_retries=7)
    handlers = Handlers({"published": Handler(Arguments.of(ingest), priority=8)})
    knowing = Client(client.database, settings, handlers)

    async def both(who: Client, **options: Any) -> set[tuple[int, int]]:
        payload = {"path": "a"}
        one = await who.submit("published", payload, **options)
        (other,) = await who.submit_many([NewJobSpec("published", payload, **options)])
        return {((job := await h.get()).priority, job.max_retries) for h in (one, other)}

    assert await both(client) == {(5, 7)}
    assert await both(knowing) == {(8, 7)}
    assert await both(knowing, priority=0, max_retries=0) == {(0, 0)}
    assert await both(client, priority=-1) == {(-1, 7)}
    assert (await (await client.submit("ingestion")).get()).priority == 10
    await knowing.close()


# -- trouble ------------------------------------------------------------------------------------


async def test_unreachable_database_raises_database_unavailable(settings: Settings) -> None:
    away = settings.model_copy(update={"connect_timeout": 2})
    client = Client(Database("host=127.0.0.1 port=1", away), away)
    for call in (client.submit("t"), client.submit_many([("t",)])):
        with pytest.raises(DatabaseUnavailable):
            await call
    await client.close()


async def test_submit_is_tried_again_only_when_there_was_no_connection_yet(
    client: Client, db: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.submit("t")
    hang_up(db)
    real = database.connect
    calls = 0

    async def late(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls < 3:
            raise psycopg.OperationalError("not yet")
        return await real(*given)

    monkeypatch.setattr(database, "connect", late)
    await client.submit("t")
    assert calls == 3


KILL_BLOCKED = """
select pg_terminate_backend(pid) from pg_stat_activity
 where datname = current_database() and application_name ~ '^laneway' and wait_event_type = 'Lock'
"""


async def test_connection_lost_before_result_raises_without_retry(
    client: Client, dsn: str, db: StoreClient
) -> None:
    """The client cannot know whether the job was stored; the caller must decide."""
    for call in (client.submit("t"), client.submit_many([("t",)])):
        db.do("begin")
        db.do("lock table laneway.jobs")
        waiting = asyncio.create_task(call)
        with psycopg.connect(dsn, autocommit=True) as watch:
            while not watch.execute(KILL_BLOCKED).fetchall():
                await asyncio.wait({waiting}, timeout=0.01)
        with pytest.raises(DatabaseUnavailable):
            await waiting
        db.do("rollback")
    assert nothing_stored(db)
