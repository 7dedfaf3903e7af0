"""Streams: every change once and in order, at any replica, and only with permission."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import httpx2
import psycopg
import pytest
from fastapi import FastAPI

from laneway.api.http import event_response
from laneway.domain.approval import Analysis, Approval
from laneway.domain.job_error import PRIVATE_MESSAGE
from laneway.domain.token import new_secret
from laneway.store import approvals, leases
from laneway.store.database import Database
from laneway.store.leases import Report, Verdict
from laneway.streams import hub
from laneway.streams import stream as limits
from tests.api.conftest import Ask, People, serve
from tests.api.streaming import PATIENCE_S, StreamEvent, reading
from tests.support.job_factory import JobFactory


@pytest.fixture
async def replica(dsn: str) -> AsyncIterator[FastAPI]:
    """A second server on the same database."""
    async for app in serve(dsn):
        yield app


@pytest.fixture
async def patient(dsn: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FastAPI]:
    """A server that is notified of changes, and polls once an hour."""
    monkeypatch.setattr(hub, "LISTEN_POLL_S", 3600.0)
    async for app in serve(dsn, event_poll_ms=3_600_000):
        yield app


def names(heard: list[StreamEvent]) -> list[str]:
    return [event.name for event in heard]


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():  # noqa: ASYNC110 -- no event announces these
            await asyncio.sleep(0.001)


# -- one job --------------------------------------------------------------------------------------


async def test_other_replica_streams_all_events_once_in_order(
    replica: FastAPI, ask: Ask, people: People, factory: JobFactory
) -> None:
    factory.publish("costly", approval=Approval(), has_analysis=True)
    factory.register(("costly",))
    boss = people.new("boss", "operator")
    job_id = (await ask(boss, "POST", "/jobs", json={"job_type": "costly"})).json()["id"]
    async with reading(replica, boss, f"/jobs/{job_id}/stream") as stream:
        assert stream.status == 200
        assert stream.headers["x-accel-buffering"] == "no"
        assert stream.headers["content-type"].startswith("text/event-stream")
        first = await stream.next()
        assert first is not None
        assert (first.name, first.data["status"]) == ("job.state", "pending")
        (claim,) = factory.claim("\x01costly")
        factory.settle(claim, "analyzed", result='{"plan": "x"}')
        assert (await ask(boss, "POST", f"/jobs/{job_id}/approve")).status_code == 200
        (claim,) = factory.claim("costly")
        factory.run(leases.report([Report(claim, done=1.0, total=4.0)], []))
        factory.settle(claim, "fail", error='{"type": "E", "message": "m"}', delay_s=0.0)
        (claim,) = factory.claim("costly")
        factory.settle(claim, result='{"ok": true}')
        heard = await stream.rest()
    assert names(heard) == [
        "job.claimed", "job.analyzed", "job.approved", "job.claimed", "job.progressed",
        "job.returned", "job.claimed", "job.completed",
    ]  # fmt: skip
    assert [e.data["status"] for e in heard] == [
        "pending", "awaiting_approval", "approved", "running", "running", "approved", "running",
        "completed",
    ]  # fmt: skip
    assert [e.number for e in heard] == sorted({e.number for e in heard})
    assert heard[4].data["progress"]["percent"] == 25.0
    assert [e.data["result"] for e in heard] == [None] * 7 + [{"ok": True}]
    listed = (await ask(boss, "GET", "/jobs")).json()["items"][0]
    assert heard[-1].data == listed, "the job, as lists show it"


async def test_stream_goes_on_at_another_replica_without_gap_or_repetition(
    app: FastAPI, replica: FastAPI, people: People, factory: JobFactory
) -> None:
    viewer, claim = people.new("v", "viewer"), factory.running()
    path = f"/jobs/{claim.job_id}/stream"
    async with reading(app, viewer, path) as stream:
        factory.run(leases.report([Report(claim, done=1.0)], []))
        last = (await stream.until("job.progressed"))[-1]
    for done in (2.0, 3.0):
        factory.run(leases.report([Report(claim, done=done)], []))
    async with reading(replica, viewer, path, last=last.id) as stream:
        factory.settle(claim)
        heard = await stream.rest()
    assert names(heard) == ["job.progressed", "job.progressed", "job.completed"]
    assert [e.data["progress"]["done"] for e in heard] == [2.0, 3.0, 3.0]
    async with reading(app, viewer, path, last=heard[-1].id) as stream:
        assert stream.status == 204, "which tells a browser not to come again"


async def test_stream_of_ended_job_has_only_its_end(
    app: FastAPI, people: People, factory: JobFactory
) -> None:
    viewer, job_id = people.new("v", "viewer"), factory.failed()
    for _ in range(2):
        async with reading(app, viewer, f"/jobs/{job_id}/stream") as stream:
            (only,) = await stream.rest()
    assert only.name == "job.failed"
    error = {"type": "ValueError", "message": PRIVATE_MESSAGE}
    assert only.data["error"] == error, "and no traceback"
    async with reading(app, viewer, f"/jobs/{job_id}/stream", last="1000000") as stream:
        assert names(await stream.rest()) == ["job.failed"], "an id that was never sent"


async def test_stream_receives_end_by_transaction_older_than_watch(
    app: FastAPI, people: People, factory: JobFactory, dsn: str
) -> None:
    viewer, claim = people.new("v", "viewer"), factory.running()
    with psycopg.connect(dsn) as other:
        JobFactory(other).settle(claim)
        async with reading(app, viewer, f"/jobs/{claim.job_id}/stream") as stream:
            first = await stream.next()
            assert first is not None
            assert first.data["status"] == "running"
            other.commit()
            assert names(await stream.rest()) == ["job.completed"]


async def test_stream_outlives_the_connections_it_is_fed_by(
    app: FastAPI, people: People, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.streams.hub.RETRY_S", 0.01)
    viewer, claim = people.new("v", "viewer"), factory.running()
    async with reading(app, viewer, f"/jobs/{claim.job_id}/stream") as stream:
        await stream.next()
        await until(lambda: app.state.hub.is_listening)
        for _ in range(2):
            factory.conn.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and application_name like 'laneway%'"
            )
            factory.run(leases.report([Report(claim, done=1.0)], []))
            (heard,) = await stream.until("job.progressed")
        factory.settle(claim)
        assert names(await stream.rest()) == ["job.completed"]
    assert heard.data["progress"]["done"] == 1.0


async def test_stream_receives_external_change_by_notification(
    patient: FastAPI, people: People, factory: JobFactory
) -> None:
    viewer, claim = people.new("v", "viewer"), factory.running()
    async with reading(patient, viewer, f"/jobs/{claim.job_id}/stream") as stream:
        await stream.next()
        await until(lambda: patient.state.hub.is_listening)
        # A new listener polls once: the second change can be found in no other way.
        factory.run(leases.report([Report(claim, done=1.0)], []))
        await stream.until("job.progressed")
        factory.settle(claim)
        assert names(await stream.rest()) == ["job.completed"]


async def test_own_change_does_not_wait_for_changes_by_others(
    dsn: str, people: People, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Notifications are gathered for an hour here; a poll of the replica finds all at once."""
    assert hub.NOTIFY_DELAY_S <= 0.05, "of the 100 ms in which a change is to be seen"
    monkeypatch.setattr(hub, "NOTIFY_DELAY_S", 3600.0)
    monkeypatch.setattr(hub, "LISTEN_POLL_S", 3600.0)
    viewer, claim = people.new("v", "viewer"), factory.running()
    async for app in serve(dsn, event_poll_ms=3_600_000):
        streams = app.state.hub
        async with reading(app, viewer, f"/jobs/{claim.job_id}/stream") as stream:
            await stream.next()
            await until(lambda streams=streams: streams.is_listening)  # type: ignore[misc]
            for done in range(5):
                factory.run(leases.report([Report(claim, done=float(done))], []))
            streams.wake()
            heard = [(await stream.until("job.progressed"))[-1] for _ in range(5)]
            assert [e.data["progress"]["done"] for e in heard] == [0.0, 1.0, 2.0, 3.0, 4.0]


async def test_idle_stream_sends_pings(
    app: FastAPI, people: People, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert event_response.PING_S <= 15
    monkeypatch.setattr(event_response, "PING_S", 0.005)
    viewer, claim = people.new("v", "viewer"), factory.running()
    async with reading(app, viewer, f"/jobs/{claim.job_id}/stream") as stream:
        await stream.next()
        rest = asyncio.ensure_future(stream.rest())
        await until(lambda: stream.pings > 1)
        factory.settle(claim)
        assert names(await rest) == ["job.completed"]


async def test_without_notifications_changes_are_found_by_looking(
    dsn: str, people: People, factory: JobFactory
) -> None:
    viewer, claim = people.new("v", "viewer"), factory.running()
    async for deaf in serve(dsn, listen=False, event_poll_ms=20):
        async with reading(deaf, viewer, f"/jobs/{claim.job_id}/stream") as stream:
            await stream.next()
            factory.settle(claim)
            assert names(await stream.rest()) == ["job.completed"]
            assert not deaf.state.hub.is_listening


async def test_stream_receives_change_of_same_replica_at_once(
    dsn: str, people: People, factory: JobFactory
) -> None:
    """Without notifications, and without a poll for an hour."""
    boss, job_id = people.new("boss", "operator"), factory.submit()
    async for deaf in serve(dsn, listen=False, event_poll_ms=3_600_000):
        async with reading(deaf, boss, f"/jobs/{job_id}/stream") as stream:
            await stream.next()
            transport = httpx2.ASGITransport(deaf)
            async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
                await client.post(f"/jobs/{job_id}/cancel", headers=boss.headers)
            assert names(await stream.rest()) == ["job.cancelled"]
        claim = factory.running()
        async with reading(deaf, boss, f"/jobs/{claim.job_id}/stream") as stream:
            await stream.next()
            # As a worker in this process does it, on separate connections.
            worker = Database(dsn, deaf.state.settings, role="tests worker")
            await worker.run(leases.settle([Verdict(claim, "finish")]))
            await worker.close()
            assert names(await stream.rest()) == ["job.completed"]


# -- topics ---------------------------------------------------------------------------------------


async def test_topics_go_on_without_gap_or_repetition_where_ids_become_visible_late(
    app: FastAPI, replica: FastAPI, people: People, factory: JobFactory, dsn: str
) -> None:
    viewer = people.new("v", "viewer")
    with psycopg.connect(dsn) as other:
        late = JobFactory(other)
        async with reading(app, viewer, "/events", topics=("jobs",)) as stream:
            opened = await stream.next()
            assert opened is not None
            assert (opened.name, opened.data["resumed"]) == ("stream.opened", False)
            slow_id = late.submit("slow")
            seen_id = factory.submit("quick")
            *_, seen = await stream.until("job.submitted")
            assert seen.data["id"] == str(seen_id)
        missed_id = factory.submit("quick")
        other.commit()
        async with reading(replica, viewer, "/events", topics=("jobs",), last=seen.id) as stream:
            first = await stream.next()
            assert first is not None
            assert first.data["resumed"] is True
            heard = [(await stream.until("job.submitted"))[-1] for _ in range(2)]
            assert {e.data["id"] for e in heard} == {str(slow_id), str(missed_id)}
            factory.submit("last")
            *_, last = await stream.until("job.submitted")
            assert last.data["job_type"] == "last"
        # Resuming at any position returns exactly the later events.
        async with reading(app, viewer, "/events", topics=("jobs",), last=heard[0].id) as stream:
            await stream.next()
            again = [(await stream.until("job.submitted"))[-1] for _ in range(2)]
            assert [e.data["id"] for e in again] == [heard[1].data["id"], last.data["id"]]


async def test_topics_are_filtered_by_permissions_of_reader(
    app: FastAPI, people: People, factory: JobFactory
) -> None:
    """Own jobs, jobs of a workspace, jobs of a lane, all jobs: by topic, and never more."""
    readers = {
        people.new("own", "submitter"): ["mine"],
        people.new("ours", "viewer", workspace="ours"): ["near"],
        people.new("lane", "viewer", lanes=["interactive"]): ["near", "mine"],
        people.new("all", "viewer"): ["near", "far", "mine"],
    }
    for who, expected in readers.items():
        async with reading(app, who, "/events", topics=("jobs", "approvals")) as stream:
            await stream.next()
            factory.submit("ingestion", workspace="ours", tags=("near",))
            factory.submit("restore", workspace="theirs", tags=("far",))
            factory.submit("ingestion", workspace="theirs", created_by="own", tags=("mine",))
            end = factory.submit("ingestion", workspace="ours", created_by="own", tags=("end",))
            heard: list[StreamEvent] = []
            while not heard or heard[-1].data["id"] != str(end):
                heard += await stream.until("job.submitted")
        assert [e.data["tags"][0] for e in heard] == [*expected, "end"], who.name


async def test_each_topic_streams_its_own_changes(
    app: FastAPI, people: People, factory: JobFactory, conn: psycopg.Connection[Any]
) -> None:
    boss = people.new("boss", "operator")
    factory.publish("costly", approval=Approval(), has_analysis=True)
    named = factory.submit("restore")
    topics = ("lane:interactive", "job_type:greet", f"job:{named}", "approvals", "lanes")
    async with reading(app, boss, "/events", topics=topics) as stream:
        await stream.next()
        factory.submit("projection")
        factory.submit("polarity")
        factory.submit("greet")
        factory.claim("restore")
        waits = factory.analyzed(Analysis())
        factory.run(approvals.reject(waits, "you", "no"))
        conn.execute("update laneway.worker_lanes set max_slots = 7 where name = 'system'")
        heard = await stream.until("lane.changed")
    assert [(e.name, e.data.get("job_type")) for e in heard[:-1]] == [
        ("job.submitted", "polarity"), ("job.submitted", "greet"), ("job.claimed", "restore"),
        ("job.analyzed", "costly"), ("job.cancelled", "costly"),
    ]  # fmt: skip
    changes = heard[-1].data
    assert (changes["kind"], changes["name"], changes["after"]["max_slots"]) == (
        "lane",
        "system",
        7,
    )


async def test_page_learns_that_a_job_is_deleted(
    app: FastAPI, replica: FastAPI, ask: Ask, people: People, factory: JobFactory
) -> None:
    boss = people.new("boss", "operator")
    ours = people.new("ours", "viewer", workspace="ours")
    for elsewhere in (app, replica):
        async with reading(elsewhere, ours, "/events", topics=("jobs",)) as stream:
            await stream.next()
            for workspace in ("theirs", "ours"):
                job_id = factory.completed("polarity", workspace=workspace)
                await ask(boss, "DELETE", f"/jobs/{job_id}")
            changes = [
                e.data for e in await stream.until("jobs.changed") if e.name == "jobs.changed"
            ]
            while changes[-1]["change"] is None:
                # A change may have happened before the watch.
                changes += [(await stream.until("jobs.changed"))[-1].data]
        assert [one for one in changes if one["change"]] == [
            {
                "change": "deleted",
                "count": 1,
                "workspace": "ours",
                "lane": "interactive",
                "job_type": "polarity",
            }
        ]


async def test_history_of_schedule_hides_other_workspaces(
    app: FastAPI, people: People, conn: psycopg.Connection[Any]
) -> None:
    """In another workspace or lane it may have had a payload that this reader may not see."""
    readers = {
        people.new("ours", "operator", workspace="ours"): [1, 4, 5, 6],
        people.new("lane", "operator", lanes=["interactive"]): [1, 2, 3, 6],
        people.new("all", "operator"): [0, 1, 2, 3, 4, 5, 6],
    }
    places = ["ours ingestion"] * 2 + ["theirs ingestion", "ours ingestion", "ours restore"]
    for who, expected in readers.items():
        conn.execute("delete from laneway.schedules")
        conn.execute(
            "insert into laneway.schedules (name, job_type, cron, workspace)"
            " values ('s', 'restore', '0 3 * * *', 'theirs')"
        )
        async with reading(app, who, "/events", topics=("lanes",)) as stream:
            await stream.next()
            for number, place in enumerate([*places, *["ours ingestion"] * 2]):
                conn.execute(
                    "update laneway.schedules set workspace = %s, job_type = %s, priority = %s",
                    [*place.split(), number],
                )
            heard: list[int] = []
            while heard[-1:] != [6]:
                heard.append((await stream.until("schedule.changed"))[-1].data["after"]["priority"])
        assert heard == expected, who.name


async def test_failed_review_does_not_extend_revoked_access(
    app: FastAPI, people: People, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.streams.hub.REVIEW_S", 0.0)
    looks: list[object] = []

    async def review(digests: Any) -> dict[bytes, Any]:
        looks.append(digests)
        if len(looks) == 1:
            raise RuntimeError("ours")
        return {}

    viewer, path = people.new("v", "viewer"), f"/jobs/{factory.submit()}/stream"
    monkeypatch.setattr(app.state.credentials, "review", review)
    async with reading(app, viewer, path) as stream:
        await stream.rest()
    assert len(looks) > 1


async def test_unresumable_stream_is_reported(
    app: FastAPI, people: People, factory: JobFactory
) -> None:
    viewer = people.new("v", "viewer")
    async with reading(app, viewer, "/events", topics=("jobs",)) as stream:
        opened = await stream.next()
        assert opened is not None
    factory.conn.execute("delete from laneway.watches")
    async with reading(app, viewer, "/events", topics=("jobs",), last=opened.id) as stream:
        again = await stream.next()
        assert again is not None
        assert again.data["resumed"] is False


# -- who, and how many ----------------------------------------------------------------------------


async def test_foreign_and_missing_jobs_have_no_stream(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    own = people.new("own", "submitter")
    job_id = factory.submit(created_by="somebody")
    for path in (f"/jobs/{job_id}/stream", f"/jobs/{uuid4()}/stream"):
        assert (await ask(own, "GET", path)).status_code == 404
    answer = await ask(own, "GET", "/events", params={"topic": f"job:{job_id}"})
    assert answer.status_code == 404
    assert (await ask(own, "GET", "/events", params={"topic": "lanes"})).status_code == 403


@pytest.mark.parametrize(
    "last", ["x", "-1", "1.5", "9" * 20, "1/2", "1.0/1.0/x", "5.1/../1", "0.0/0.0/0"]
)
async def test_id_that_no_stream_sends_is_refused(
    ask: Ask, people: People, factory: JobFactory, last: str
) -> None:
    viewer, job_id = people.new("v", "viewer"), factory.submit()
    for path in (f"/jobs/{job_id}/stream", "/events?topic=jobs"):
        answer = await ask(viewer, "GET", path, headers={"Last-Event-ID": last})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "Last-Event-ID")


@pytest.mark.parametrize(
    "topic", ["", "job", "job:x", "lane:", "lane:A", "jobs:x", "nothing", "job_type:"]
)
async def test_topic_there_is_not_is_refused(ask: Ask, people: People, topic: str) -> None:
    answer = await ask(people.new("v", "viewer"), "GET", "/events", params={"topic": topic})
    assert answer.status_code == 422


async def test_slow_reader_is_dropped_and_can_resume(
    app: FastAPI, people: People, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_FRAMES", 3)
    viewer, claim = people.new("v", "viewer"), factory.running()
    path = f"/jobs/{claim.job_id}/stream"
    async with reading(app, viewer, path) as slow, reading(app, viewer, path) as quick:
        first = await slow.next()
        assert first is not None
        slow.reads.clear()
        for done in range(8):
            factory.run(leases.report([Report(claim, done=float(done))], []))
            await quick.until("job.progressed")
        await until(lambda: app.state.hub.open_streams == 1)
    async with reading(app, viewer, path, last=first.id) as stream:
        factory.settle(claim)
        heard = await stream.rest()
    assert [e.data["progress"]["done"] for e in heard] == [*map(float, range(8)), 7.0]


async def test_streams_of_a_token_and_of_a_server_are_bounded(
    dsn: str, people: People, factory: JobFactory
) -> None:
    a, b = people.new("a", "viewer"), people.new("b", "viewer")
    path = f"/jobs/{factory.submit()}/stream"
    async for app in serve(dsn, max_streams=3, max_streams_per_token=2):
        async with reading(app, a, path), reading(app, a, path):
            async with reading(app, a, path) as refused:
                assert refused.status == 429
                assert refused.headers["retry-after"] == "5"
            async with reading(app, b, path) as taken:
                assert taken.status == 200
                async with reading(app, b, path) as refused:
                    assert refused.status == 429
            async with reading(app, b, path) as taken:
                assert taken.status == 200, "there is room again"
        assert app.state.hub.open_streams == 0


async def test_revoked_read_permission_ends_streams(
    app: FastAPI, people: People, factory: JobFactory, conn: psycopg.Connection[Any]
) -> None:
    assert hub.REVIEW_S < 5, "within five seconds, at every replica"
    people.new("stays", "viewer")
    cases = (
        "update laneway.tokens set revoked_at = clock_timestamp() where principal_id = %s",
        "update laneway.tokens set expires_at = clock_timestamp() where principal_id = %s",
        "update laneway.principals set disabled_at = clock_timestamp() where id = %s",
        "delete from laneway.role_grants where principal_id = %s",
    )
    path = f"/jobs/{factory.submit()}/stream"
    for number, change in enumerate(cases):
        who = people.new(f"p{number}", "viewer")
        async with (
            reading(app, who, path) as job,
            reading(app, who, "/events", topics=("jobs",)) as topics,
        ):
            await job.next()
            await topics.next()
            await app.state.hub.review()
            conn.execute(change.encode(), [who.id])
            await app.state.hub.review()
            assert await job.rest() == []
            assert await topics.rest() == []


async def test_streams_of_a_browser_end_with_its_session(
    app: FastAPI, people: People, factory: JobFactory, conn: psycopg.Connection[Any]
) -> None:
    secret = new_secret("session")
    conn.execute(
        "insert into laneway.sessions (digest, principal_id, csrf, expires_at)"
        " values (%s, %s, 'x', now() + interval '1 h')",
        [secret.digest, people.new("v", "viewer").id],
    )
    path = f"/jobs/{factory.submit()}/stream"
    async with reading(app, None, path, cookie=secret.text) as stream:
        await stream.next()
        await app.state.hub.review()
        assert app.state.hub.open_streams == 1
        conn.execute("delete from laneway.sessions")
        await app.state.hub.review()
        assert await stream.rest() == []


async def test_server_that_stops_lets_its_readers_go(
    app: FastAPI, people: People, factory: JobFactory
) -> None:
    viewer, path = people.new("v", "viewer"), f"/jobs/{factory.submit()}/stream"
    async with reading(app, viewer, path) as stream:
        await stream.next()
        await app.state.close()
        assert await stream.rest() == []
    async with reading(app, viewer, path) as refused:
        assert refused.status == 429


async def test_database_is_not_polled_without_readers(
    app: FastAPI, people: People, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.streams.hub.LINGER_S", 0.0)
    viewer, path = people.new("v", "viewer"), f"/jobs/{factory.submit()}/stream"
    async with reading(app, viewer, path) as stream:
        await stream.next()
        await until(lambda: app.state.hub.is_listening)
    app.state.hub.wake()
    await until(lambda: not app.state.hub.is_listening)
    async with reading(app, viewer, path) as stream:
        first = await stream.next()
        assert first is not None
        assert first.name == "job.state"


async def test_lost_watch_makes_readers_reconnect(
    app: FastAPI, people: People, factory: JobFactory, conn: psycopg.Connection[Any]
) -> None:
    viewer, path = people.new("v", "viewer"), f"/jobs/{factory.submit()}/stream"
    async with reading(app, viewer, path) as stream:
        await stream.next()
        await app.state.hub.renew_watches()
        assert app.state.hub.open_streams == 1
        conn.execute("delete from laneway.watches")
        await app.state.hub.renew_watches()
        assert await stream.rest() == []
