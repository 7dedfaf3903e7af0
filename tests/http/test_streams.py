"""Streams of a real server, followed by the client without an event loop."""

from __future__ import annotations

from contextlib import closing
from urllib.parse import urlsplit

import pytest

from laneway.domain.states import Status
from laneway.errors import JobFailed, NotFound
from laneway.http import Client
from tests.api.conftest import People
from tests.http.threaded_server import served
from tests.support.job_factory import JobFactory


@pytest.fixture
def token(people: People) -> str:
    return people.new("admin", "platform_admin").token


def test_watch_yields_all_events_across_server_restart(
    dsn: str, factory: JobFactory, token: str
) -> None:
    job_id = factory.submit()
    with served(dsn) as url:
        client = Client(url, token)
        events = client.watch(job_id)
        first = next(events)
        (claim,) = factory.claim()
        second = next(events)
    factory.settle(claim, result='{"ok": true}')
    with served(dsn, urlsplit(url).port or 0), closing(client):
        rest = list(events)

    assert [each.job.status for each in (first, second, *rest) if each.job] == [
        Status.APPROVED,
        Status.RUNNING,
        Status.COMPLETED,
    ]
    assert rest[-1].job is not None
    assert rest[-1].job.result == {"ok": True}


def test_wait_ends_with_the_job(dsn: str, factory: JobFactory, token: str) -> None:
    done, failed, waiting = factory.completed(), factory.failed("bad"), factory.submit("later")
    with served(dsn) as url, Client(url, token) as client:
        assert client.wait(done, timeout=30) == {"ok": True}
        with pytest.raises(JobFailed, match="ValueError: no"):
            client.wait(str(failed))
        with pytest.raises(TimeoutError):
            client.wait(waiting, timeout=0)
        with pytest.raises(NotFound):
            client.wait("00000000-0000-0000-0000-000000000001")


def test_wait_ends_with_the_flow(dsn: str, factory: JobFactory, token: str) -> None:
    with served(dsn) as url, Client(url, token) as client:
        submitted = client.submit_flow("nightly", [{"job_type": "page"}])
        made = submitted.flow.id
        assert submitted.id == made
        with pytest.raises(TimeoutError, match=f"flow {made} did not end within 0 s"):
            client.wait_flow(made, timeout=0)
        events = client.watch_flow(made)
        assert next(events).name == "flow.state"
        (claim,) = factory.claim("page")
        factory.settle(claim)
        *_, last = events
        assert (last.name, last.flow) == ("flow.completed", client.wait_flow(made, timeout=30))
        with pytest.raises(NotFound):
            client.wait_flow("00000000-0000-0000-0000-000000000001")


def test_events_of_topics_come_as_they_happen(dsn: str, factory: JobFactory, token: str) -> None:
    with served(dsn) as url, Client(url, token) as client:
        events = client.events(["jobs", "lanes"])
        assert next(events).name == "stream.opened"
        made = client.submit("greet")
        # A transaction of another test, older than the stream, sends `jobs.changed` first.
        seen = next(one for one in events if not one.name.endswith("s.changed"))
        assert seen.job is not None
        assert (seen.name, seen.job.id) == ("job.submitted", made.id)
        assert seen.id
        events.close()  # type: ignore[attr-defined]
