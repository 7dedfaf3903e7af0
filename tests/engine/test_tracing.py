"""Traces lead from a submit to each attempt, wherever its handler runs."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.trace import SpanKind, StatusCode

from laneway import Context, Retry, SyncContext
from laneway.errors import InvalidInput
from laneway.observability import tracing
from tests.engine import tracing_handlers
from tests.engine.spans import Spans, spans
from tests.support.worker_harness import SOON, WorkerHarness

__all__ = ["spans"]

THEIRS = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def ids(span: ReadableSpan) -> tuple[int, int]:
    context = span.get_span_context()
    assert context is not None
    return context.trace_id, context.span_id


def parent(span: ReadableSpan) -> tuple[int, int] | None:
    return None if span.parent is None else (span.parent.trace_id, span.parent.span_id)


def here() -> int:
    return trace.get_current_span().get_span_context().span_id


async def test_first_attempt_is_a_child_of_the_submit_and_later_ones_link(
    harness: WorkerHarness, spans: Spans
) -> None:
    seen: list[int] = []

    @harness.lw.handler("flaky", retry=SOON)
    async def flaky(ctx: Context) -> None:
        seen.append(here())
        if ctx.attempt == 1:
            raise Retry("once more", after=0.0)

    await harness.start_worker()
    with spans.around("request") as request:
        job = await harness.lw.submit("flaky")
    await harness.ended(job)
    sent = spans.one("send flaky")
    first, second = spans.named("process flaky")
    context = request.get_span_context()
    assert parent(sent) == (context.trace_id, context.span_id)
    assert sent.kind is SpanKind.PRODUCER
    assert parent(first) == ids(sent)
    assert parent(second) is None
    assert ids(second)[0] != ids(sent)[0]
    assert [link.context.span_id for link in second.links] == [ids(sent)[1]]
    assert seen == [ids(first)[1], ids(second)[1]]
    attributes: dict[str, Any] = {**(second.attributes or {})}
    assert attributes["messaging.system"] == "laneway"
    assert attributes["messaging.operation.type"] == "process"
    assert attributes["messaging.message.id"] == str(job.id)
    assert (attributes["laneway.lane"], attributes["laneway.attempt"]) == ("default", 2)
    assert first.status.status_code is StatusCode.ERROR
    assert first.events[0].name == "exception"
    assert second.status.status_code is StatusCode.UNSET


async def test_span_is_current_only_in_its_own_thread(harness: WorkerHarness, spans: Spans) -> None:
    @harness.lw.handler("plain")
    def plain(ctx: SyncContext) -> int:
        return here()

    await harness.start_worker()
    jobs = [await harness.lw.submit("plain") for _ in range(3)]
    answers = [await job.wait(60) for job in jobs]
    assert sorted(map(str, answers)) == sorted(
        str(ids(span)[1]) for span in spans.named("process plain")
    )


async def test_child_process_gets_the_trace(harness: WorkerHarness, spans: Spans) -> None:
    harness.lw.handlers.add(tracing_handlers.traced_apart.handler)
    await harness.start_worker()
    job = await harness.lw.submit("traced_apart")
    origin = await job.wait(60)
    trace_id, span_id = ids(spans.one("process traced_apart"))
    assert str(origin).startswith(f"00-{trace_id:032x}-{span_id:016x}-")


class Broken(SpanProcessor):
    """A broken span processor of an application."""

    def __init__(self, when: str) -> None:
        self._when = when

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        self._fail("start")

    def on_end(self, span: ReadableSpan) -> None:
        self._fail("end")

    def _fail(self, when: str) -> None:
        if when == self._when:
            raise RuntimeError("broken")


@pytest.mark.parametrize("when", ["start", "end"])
async def test_tracer_that_fails_harms_neither_submits_nor_jobs(
    harness: WorkerHarness, spans: Spans, when: str
) -> None:
    @harness.lw.handler("on_loop")
    async def on_loop(ctx: Context) -> str:
        return "done"

    @harness.lw.handler("in_thread")
    def in_thread(ctx: SyncContext) -> str:
        return "done"

    spans.provider.add_span_processor(Broken(when))
    await harness.start_worker()
    jobs = [await harness.lw.submit("on_loop"), await harness.lw.submit("in_thread")]
    jobs += await harness.lw.submit_many([("on_loop", {})])
    assert [await job.wait(60) for job in jobs] == ["done"] * 3
    with pytest.raises(InvalidInput):
        await harness.lw.submit("on_loop", {"no": "such argument"})


async def test_without_opentelemetry_a_trace_is_passed_on_but_not_written(
    harness: WorkerHarness,
) -> None:
    assert not tracing.is_on()
    token = tracing.receive(THEIRS)
    assert token is not None
    made = [await harness.lw.submit("a"), *await harness.lw.submit_many([("b", {}), ("c", {})])]
    tracing.forget(token)
    made.append(await harness.lw.submit("d"))
    kept = [
        harness.one("select traceparent from laneway.jobs where id = %s", job.id) for job in made
    ]
    assert kept == [THEIRS, THEIRS, THEIRS, None]


async def test_batch_is_one_span_and_a_sync_submit_knows_its_caller(
    harness: WorkerHarness, spans: Spans
) -> None:
    await harness.lw.submit_many([("a", {}), ("b", {})])
    batch = spans.one("send batch")
    assert (batch.attributes or {})["messaging.batch.message_count"] == 2
    with spans.around("caller") as caller:
        harness.lw.sync.submit("plain")
    assert parent(spans.one("send plain")) == (
        caller.get_span_context().trace_id,
        caller.get_span_context().span_id,
    )
    kept = harness.one("select distinct traceparent from laneway.jobs where job_type in ('a', 'b')")
    assert kept.startswith(f"00-{ids(batch)[0]:032x}-{ids(batch)[1]:016x}-")


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "junk",
        THEIRS.replace("00-", "ff-", 1),
        THEIRS + "-more",
        THEIRS.upper(),
        "00-" + "0" * 32 + THEIRS[35:],
        THEIRS[:36] + "0" * 16 + "-01",
        "00-' or 1=1",
    ],
)
def test_invalid_traceparent_is_not_stored(text: str | None) -> None:
    assert tracing.read_traceparent(text) is None


def test_later_version_is_read_as_far_as_it_is_known() -> None:
    assert tracing.read_traceparent(THEIRS.replace("00-", "01-", 1) + "-more") == THEIRS
