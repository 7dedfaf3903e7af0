"""`JobType`: submits by the handler's signature, and results by its return hint."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from laneway import Context, Laneway
from laneway.client import NewJobSpec
from laneway.errors import InvalidInput, UnreadableValue
from tests.support.worker_harness import WorkerHarness

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass
class Page:
    number: int
    read_at: datetime


def typed_handlers(lw: Laneway) -> Any:
    @lw.handler("read", max_retries=0)
    async def read(ctx: Context, path: str, number: int = 1, *, at: datetime = NOON) -> Page:
        return Page(number, at)

    return read


async def test_result_is_read_by_the_return_hint(harness: WorkerHarness) -> None:
    read = typed_handlers(harness.lw)
    await harness.start_worker()
    later = datetime(2026, 2, 1, tzinfo=UTC)
    job = await read.submit(path="a.pdf", number=2, at=later)
    assert await job.wait(timeout=60) == Page(2, later)
    assert await harness.lw.wait(job.id) == {"number": 2, "read_at": "2026-02-01T00:00:00Z"}
    named = await harness.lw.submit("read", {"path": "a.pdf"})
    assert await named.wait(timeout=60) == {"number": 1, "read_at": "2026-01-01T12:00:00Z"}


async def test_jobs_of_a_batch_have_options_and_typed_results(harness: WorkerHarness) -> None:
    read = typed_handlers(harness.lw)
    await harness.start_worker()
    spec = read.options(priority=7, tags=["a"]).job("a.pdf", number=2)
    assert spec == NewJobSpec("read", {"path": "a.pdf", "number": 2}, priority=7, tags=["a"])
    typed, plain = await harness.lw.submit_many([spec, ("read", {"path": "b.pdf"})])
    assert await typed.wait(timeout=60) == Page(2, NOON)
    assert (await typed.get()).priority == 7
    assert (await plain.wait(timeout=60))["number"] == 1


async def test_typed_job_without_an_event_loop(harness: WorkerHarness) -> None:
    read = typed_handlers(harness.lw)
    await harness.start_worker()
    job = await asyncio.to_thread(lambda: read.options(priority=3).sync.submit("a.pdf", number=4))
    assert await asyncio.to_thread(lambda: job.wait(timeout=60)) == Page(4, NOON)
    assert (await asyncio.to_thread(job.get)).priority == 3
    (other,) = await asyncio.to_thread(lambda: harness.lw.sync.submit_many([read.job("b.pdf")]))
    assert await asyncio.to_thread(lambda: other.wait(timeout=60)) == Page(1, NOON)


async def test_result_that_does_not_fit_the_hint_is_named(harness: WorkerHarness) -> None:
    read = typed_handlers(harness.lw)
    other = Laneway(harness.dsn)

    @other.handler("read")
    async def older(ctx: Context, path: str) -> dict[str, int]:
        return {"number": 1}

    job = await read.submit(path="a.pdf")
    await harness.start_worker(other)
    with pytest.raises(UnreadableValue, match=r"result\.read_at: is required.*`lw.wait` returns"):
        await job.wait(timeout=60)
    assert await harness.lw.wait(job.id) == {"number": 1}
    await other.close()


async def test_arguments_by_position_are_those_by_name() -> None:
    lw = Laneway()
    read = typed_handlers(lw)
    assert read.job("a.pdf", 2).payload == read.job(path="a.pdf", number=2).payload
    with pytest.raises(InvalidInput, match="too many positional arguments"):
        read.job("a.pdf", 2, NOON)
    with pytest.raises(InvalidInput, match="path: is given twice, by position and by name"):
        read.job("a.pdf", path="b.pdf")


@pytest.mark.parametrize(
    "arguments, rule",
    [
        ({"pth": "a"}, "payload.pth: is not an argument of this job type; did you mean path"),
        ({"path": "a", "colour": 1}, "payload.colour: is not an argument of this job type$"),
        ({"path": "a", "priority": 5}, r"type; as an option, write read.options\(priority=…\)"),
        ({}, "payload.path: is required"),
    ],
)
async def test_wrong_argument_is_named_with_the_cure(arguments: dict[str, Any], rule: str) -> None:
    read = typed_handlers(Laneway())
    with pytest.raises(InvalidInput, match=rule):
        await read.submit(**arguments)
    with pytest.raises(InvalidInput, match=rule):
        read.job(**arguments)
    with pytest.raises(InvalidInput, match=rule):
        read.sync.submit(**arguments)


async def test_name_of_a_job_of_a_flow_is_an_option_of_its_handler(harness: WorkerHarness) -> None:
    @harness.lw.handler("greet")
    async def greet(ctx: Context, name: str) -> str:
        return name

    named = greet.options(name="first")
    async with harness.lw.flow("greetings") as flow:
        first = flow.add(named, name="ada")
        second = flow.add(greet, name="bob")
        flow.add(greet.job(name="cy"), name="third")
    names = "select l.name from laneway.links l join laneway.jobs j using (seq) order by j.seq"
    assert [row[0] for row in harness.rows(names)] == ["first", None, "third"]
    assert (await first.get()).payload == {"name": "ada"}
    assert (await second.get()).payload == {"name": "bob"}
    for call in (named.submit, named.job, named.sync.submit):
        with pytest.raises(InvalidInput, match="name: is an option of a job in a flow"):
            await call(name="ada")  # type: ignore[misc]


@pytest.mark.parametrize(
    "option, rule",
    [
        ("countdown", "countdown: is not an option of submit; did you mean delay"),
        ("workspace", r"workspace: is an option of the flow: write lw\.flow"),
        ("nubmer", r"payload\.nubmer"),
    ],
)
async def test_wrong_option_of_flow_add_is_named_with_the_cure(option: str, rule: str) -> None:
    lw = Laneway()
    read = typed_handlers(lw)
    with pytest.raises(InvalidInput, match=rule):
        async with lw.flow("nightly") as flow:
            flow.add(read, path="a", **{option: 5})


async def test_job_of_a_batch_has_no_connection() -> None:
    read = typed_handlers(Laneway())
    with pytest.raises(InvalidInput, match="wake: is not an option of one job: give it to"):
        read.options(wake=False).job(path="a.pdf")


async def test_handler_that_takes_any_name_does(harness: WorkerHarness) -> None:
    @harness.lw.handler("sum")
    async def add(ctx: Context, /, **numbers: int) -> int:
        return sum(numbers.values())

    await harness.start_worker()
    assert await (await add.submit(a=1, priority=2)).wait(timeout=60) == 3
