"""The clients follow streams to the last event and resume lost connections."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from laneway.errors import (
    Forbidden,
    JobFailed,
    NotFound,
    ServerError,
    ServerUnreachable,
)
from laneway.http import AsyncClient, Client, ControlChanged, Event, JobsChanged, Opened
from laneway.http.procedure import Close, Emit, Open, Pause, ReadBytes, Reply, follow, of_job
from tests.http.scripted_server import (
    JOB,
    TOKEN,
    ChunkedBody,
    ClientRunner,
    ScriptedServer,
    answer,
    event,
    problem,
    sse_event,
    stream,
)

pytestmark = pytest.mark.usefixtures("no_pauses")


def test_watch_resumes_after_last_event_until_job_ends(runner: ClientRunner) -> None:
    torn = event(3, "running")
    script = ScriptedServer(
        stream(b": hi\n\n", event(1, "approved", "job.state"), event(2, "running")[:9]),
        httpx2.ConnectError("restarting"),
        problem(503, "database_unavailable"),
        stream(torn[:20], torn[20:], httpx2.ReadError("cut")),
        stream(event(4, "completed", "job.completed", result=5), event(5, "never seen")),
    )
    found: list[Event] = runner.call(script, lambda c: c.watch(JOB))
    assert [each.id for each in found] == ["1", "3", "4"]
    assert [each.name for each in found][::2] == ["job.state", "job.completed"]
    assert found[-1].job is not None
    assert found[-1].job.result == 5
    assert script.headers("last-event-id") == [None, "1", "1", "1", "3"]
    assert {request.url.path for request in script.requests} == {f"/api/jobs/{JOB}/stream"}


def test_watch_of_ended_job_ends_quietly(runner: ClientRunner) -> None:
    script = ScriptedServer(answer(204))
    assert runner.call(script, lambda c: c.watch(JOB, last_event_id="9")) == []
    assert script.headers("last-event-id") == ["9"]


def test_watch_that_is_refused_is_not_tried_again(runner: ClientRunner) -> None:
    script = ScriptedServer(problem(404, "not_found", f"no job {JOB}"))
    with pytest.raises(NotFound, match="no job"):
        runner.call(script, lambda c: c.watch(JOB))


def test_server_that_stays_away_ends_a_watch(runner: ClientRunner) -> None:
    script = ScriptedServer(stream(event(1, "running")), *[httpx2.ConnectError("away")] * 20)
    with pytest.raises(ServerUnreachable, match="away"):
        runner.call(script, lambda c: c.watch(JOB))
    assert len(script.left) == 10


def test_retry_interval_of_stream_is_respected(
    runner: ClientRunner, no_pauses: list[float]
) -> None:
    script = ScriptedServer(stream(b"retry: 1500\n\n"), stream(event(1, "failed")))
    runner.call(script, lambda c: c.watch(JOB))
    assert no_pauses == [1.5]


def test_stopped_watch_closes_connection() -> None:
    body = ChunkedBody(event(1, "running"), event(2, "running"))
    script = ScriptedServer(httpx2.Response(200, stream=body))
    with Client("http://localhost", TOKEN, transport=script) as client:
        events = client.watch(JOB)
        assert next(events).id == "1"
        events.close()  # type: ignore[attr-defined]
        assert body.is_closed


def test_events_of_topics_are_typed_where_they_are_about_a_job(runner: ClientRunner) -> None:
    many = {"change": "claimed", "count": 300, "workspace": None, "lane": "a", "job_type": None}
    tuned: dict[str, Any] = {"kind": "lane", "name": "a", "by": "ann", "before": {}, "after": None}
    script = ScriptedServer(
        stream(
            sse_event("a", "stream.opened", {"resumed": False, "topics": ["jobs"]}),
            sse_event("b", "jobs.changed", many),
            sse_event("c", "lane.changed", tuned),
            sse_event("d", "something.new", {"x": 1}),
            event(1, "failed"),
        ),
        problem(403, "forbidden"),
    )
    found: list[Event] = []

    def listen(client: Client) -> None:
        found.extend(client.events(["jobs", "lane:default"]))

    async def hear(client: AsyncClient) -> None:
        async for each in client.events(["jobs", "lane:default"]):
            found.append(each)  # noqa: PERF401 - the error comes in between

    with pytest.raises(Forbidden):
        runner.call(script, listen if runner.kind is Client else hear)
    assert "".join(str(each.id) for each in found) == "abcd1"
    assert [each.data for each in found[:4]] == [
        Opened(resumed=False, topics=["jobs"]),
        JobsChanged("claimed", 300, None, "a", None),
        ControlChanged("lane", "a", "ann", {}, None),
        {"x": 1},
    ]
    assert found[4].job is not None
    assert script.headers("last-event-id") == [None, "1"]
    assert script.requests[0].url.params.get_list("topic") == ["jobs", "lane:default"]


def test_wait_returns_result_or_raises_final_state(runner: ClientRunner) -> None:
    done = ScriptedServer(
        stream(event(1, "running")), stream(event(2, "completed", result={"n": 1}))
    )
    assert runner.call(done, lambda c: c.wait(JOB, timeout=60)) == {"n": 1}
    error = {"type": "ValueError", "message": "no"}
    failed = ScriptedServer(stream(event(1, "failed", error=error)))
    with pytest.raises(JobFailed, match="failed: ValueError: no"):
        runner.call(failed, lambda c: c.wait(JOB))
    cancelled = ScriptedServer(stream(event(1, "cancelled")))
    with pytest.raises(JobFailed, match="was cancelled"):
        runner.call(cancelled, lambda c: c.wait(JOB))


def flow_event(number: int, status: str, **counts: int) -> bytes:
    name = "flow.state" if status == "running" else f"flow.{status}"
    flow = {"id": str(JOB), "name": "nightly", "workspace": "default", "tags": [], "status": status}
    more = {"created_at": "2026-11-19T00:00:00Z", "created_by": None, "finished_at": None}
    return sse_event(str(number), name, flow | more | {"counts": {"jobs": 3} | counts})


def test_watch_of_a_flow_resumes_until_the_flow_ends(runner: ClientRunner) -> None:
    script = ScriptedServer(
        stream(flow_event(1, "running"), event(2, "completed", "job.completed")),
        # The server begins with the state of the flow.
        stream(flow_event(3, "running", completed=1), flow_event(4, "completed", completed=3)),
    )
    found: list[Event] = runner.call(script, lambda c: c.watch_flow(JOB))
    assert [each.id for each in found] == ["1", "2", "3", "4"]
    assert found[1].flow is None
    assert found[-1].flow is not None
    assert found[-1].flow.counts.completed == 3
    assert {request.url.path for request in script.requests} == {f"/api/flows/{JOB}/stream"}


def test_wait_for_a_flow_returns_it_or_raises_its_state(runner: ClientRunner) -> None:
    done = ScriptedServer(
        stream(flow_event(1, "running"), event(2, "failed", "job.failed")),
        stream(flow_event(3, "completed", completed=3)),
    )
    assert runner.call(done, lambda c: c.wait_flow(JOB, timeout=60)).counts.completed == 3
    failed = ScriptedServer(stream(flow_event(1, "failed", completed=2, failed=1)))
    with pytest.raises(JobFailed, match=f"flow nightly {JOB} failed: 2 of 3 jobs completed"):
        runner.call(failed, lambda c: c.wait_flow(JOB))
    cancelled = ScriptedServer(stream(flow_event(1, "cancelled", cancelled=3)))
    with pytest.raises(JobFailed, match="was cancelled"):
        runner.call(cancelled, lambda c: c.wait_flow(JOB))
    with pytest.raises(ServerError, match=r"the stream of flow .* ended before the flow did"):
        runner.call(ScriptedServer(answer(204)), lambda c: c.wait_flow(JOB))


def test_wait_ends_in_time_though_the_job_does_not() -> None:
    now = 0.0
    steps = follow(of_job(JOB), 10.0, lambda: now)
    opened = next(steps)
    assert isinstance(opened, Open)
    assert opened.silence_s == 10.0
    assert isinstance(steps.send(Reply(200)), ReadBytes)
    now = 1.0
    assert isinstance(steps.send(b": ping\n\n"), ReadBytes)
    now = 3.0
    # If this connection went silent now, its read timeout would end too late.
    assert isinstance(steps.send(b": ping\n\n"), Close)
    # The server responds: a pause could miss its next event.
    opened = steps.send(None)
    assert isinstance(opened, Open)
    assert opened.silence_s == 7.0
    assert isinstance(steps.send(Reply(200)), ReadBytes)
    now = 9.8
    assert isinstance(steps.send(event(1, "running")), Emit)
    assert isinstance(steps.send(None), Close)
    opened = steps.send(None)
    assert isinstance(opened, Open)
    assert opened.last_id == "1"
    assert isinstance(steps.send(Reply(200)), ReadBytes)
    now = 9.9
    # Too little time is left for another connection.
    assert isinstance(steps.send(b": ping\n\n"), ReadBytes)
    now = 10.0
    assert isinstance(steps.send(None), Close)
    assert isinstance(steps.send(None), Pause)
    with pytest.raises(TimeoutError):
        steps.send(None)


def test_zero_timeout_reads_once(runner: ClientRunner) -> None:
    script = ScriptedServer(stream(b": hi\n\n", event(1, "completed", result=1)))
    assert runner.call(script, lambda c: c.wait(JOB, timeout=0)) == 1
