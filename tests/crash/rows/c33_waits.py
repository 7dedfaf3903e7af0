"""C33: sub-jobs, sleeps and events, while workers, senders and PostgreSQL are killed or frozen.

A book runs its parts in order: steps, sub-jobs, nested sub-jobs, sleeps, events and timeouts. Its
result is known in advance. Operators in separate processes send each event once, some before a
handler waits for it, and cancel books whose sub-jobs never end.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from laneway import Laneway
from tests.crash.flow_app import digest
from tests.crash.flow_faults import FlowFaults, Operators
from tests.crash.flow_load import Pace
from tests.crash.row_run import Job, RowRun, cancel_load, wait_until

BOOKS, DOOMED = 600, 40
KILLS, OPERATORS_KILLED, FREEZES, RESTARTS = 16, 6, 3, 3
EVERY_S = 1.0
WORKERS = 3
DRAIN_S = 30.0
PARTS = ("step", "pages", "pages", "chapters", "broken", "sleep", "event", "event", "timeout")
DOOMED_PAGES = 3


async def inject(run: RowRun) -> None:
    run.app = "tests.crash.flow_app:lw"
    workers = [run.start_worker() for _ in range(WORKERS)]
    await run.ready(*workers)
    with Operators(run, 2) as operators:
        faults = FlowFaults(run, workers, operators)
        kinds = faults.shuffled(
            kill=run.count(KILLS, 2),
            operator=run.count(OPERATORS_KILLED, 1),
            freeze=run.count(FREEZES, 1),
            restart=run.count(RESTARTS, 1),
        )
        async with run.client() as client:
            feeding = asyncio.ensure_future(_feed(run, client, len(kinds)))
            try:
                await faults.inject(kinds, EVERY_S)
                await feeding
            finally:
                await cancel_load(feeding)
            await wait_until(lambda: run.waiting() == 0, DRAIN_S + 60, "the last book ends", 0.1)
            await run.drain(DRAIN_S)


async def _feed(run: RowRun, client: Laneway, faults: int) -> None:
    total = run.count(BOOKS) + run.count(DOOMED, 2)
    doomed = run.count(DOOMED, 2)
    pace = Pace(run, total, faults, EVERY_S)
    made = 0
    while made < total:
        is_doomed = made % (total // doomed) == 0
        job = _doomed(run) if is_doomed else _book(run)
        # An unknown submit is not repeated: it may exist.
        made += len(await run.submit(client, job))
        await pace.keep(made)


def _book(run: RowRun) -> Job:
    rand = run.load_random
    plan = [rand.choice(PARTS) for _ in range(rand.randint(1, 4))]
    job = run.job(
        "book",
        plan=plan,
        pages=rand.randint(1, 4),
        ms=rand.choice([1, 5, 20, 60]),
        nap=rand.choice([0.05, 0.3, 1.0]),
        events=plan.count("event"),
        is_early=rand.random() < 0.3,
    )
    payload = job[1]
    run.expected[payload["op"]] = ("completed", _result(run, payload))
    return job


def _doomed(run: RowRun) -> Job:
    job = run.job("doomed_book", pages=DOOMED_PAGES)
    op = job[1]["op"]
    run.expected[op] = ("cancelled", None)
    for n in range(DOOMED_PAGES):
        run.expected[f"{op}/{n}"] = ("cancelled", None)
    return job


# The result without faults ------------------------------------------------------------------------


def _result(run: RowRun, payload: dict[str, Any]) -> str:
    """The result of a book; notes the ends of its sub-jobs."""
    op = payload["op"]
    events = 0
    parts: list[Any] = [op]
    for n, kind in enumerate(payload["plan"]):
        place = f"{op}/{n}-{kind}"
        if kind == "step":
            parts.append(digest(op, f"{n}-{kind}"))
        elif kind == "pages":
            parts.append([_page(run, f"{place}/{i}") for i in range(payload["pages"])])
        elif kind == "chapters":
            parts.append([_chapter(run, f"{place}/{i}") for i in range(2)])
        elif kind == "broken":
            run.expected[f"{place}/1"] = ("failed", None)
            parts.append([f"completed:{_page(run, f'{place}/0')}", "failed:None"])
        elif kind == "event":
            events += 1
            parts.append(events)
        else:
            parts.append("timeout" if kind == "timeout" else None)
    return digest(*parts)


def _page(run: RowRun, op: str) -> str:
    run.expected[op] = ("completed", digest(op))
    return digest(op)


def _chapter(run: RowRun, op: str) -> str:
    result = digest(op, *(_page(run, f"{op}/{n}") for n in range(2)))
    run.expected[op] = ("completed", result)
    return result


# What must hold -----------------------------------------------------------------------------------


def check(run: RowRun) -> None:
    result = run.result
    met = Counter(event.more["kind"] for event in run.history.of("fault"))
    result.must(
        "met: workers, operators and PostgreSQL killed, workers frozen",
        dict(met),
        held=all(met[kind] for kind in ("kill", "operator", "freeze", "restart")),
    )
    waited = sum(event.more["outcome"] == "waited" for event in run.history.of("kept"))
    result.must("attempts that ended to wait", waited, held=waited > 0)
    wrong = run.must_end_as_expected()
    made = {job.op for job in run.final.jobs.values()}
    books = {op for op in run.expected if "/" not in op} & made
    missing = [op for op in run.expected if op.partition("/")[0] in books and op not in made]
    result.must("sub-jobs that never existed", missing[:3] or 0, held=not missing)
    again = _ran_again(run)
    result.must("steps that ran again after they were passed", again, held=not again)
    early = _woke_early(run)
    result.must("sleeps that ended too early", early, held=not early)
    left = run.ask(
        "select (select count(*) from laneway.open_edges)"
        " + (select count(*) from laneway.countdowns)"
    )
    result.must("open edges", left, held=left == 0)
    result.figures.update(
        books=len(books), waits=waited, wait_faults=result.faults, book_jobs_wrong=wrong
    )


def _ran_again(run: RowRun) -> int:
    """Runs of a step in an attempt after one that had passed it."""
    count = 0
    for events in run.history.per_job("ran", "passed").values():
        passed: dict[str, int] = {}
        for event in sorted(events, key=lambda event: float(event.more["t"])):
            name, attempt = event.more["name"], event.attempt or 0
            if event.what == "passed":
                passed.setdefault(name, attempt)
            else:
                count += name in passed and attempt > passed[name]
    return count


def _woke_early(run: RowRun) -> int:
    """Sleeps that a handler passed before their time, since it first asked."""
    count = 0
    for events in run.history.per_job("sleeps", "passed").values():
        asked: dict[str, tuple[float, float]] = {}
        for event in sorted(events, key=lambda event: float(event.more["t"])):
            name, t = event.more["name"], float(event.more["t"])
            if event.what == "sleeps":
                asked.setdefault(name, (t, float(event.more["seconds"])))
            elif name in asked:
                since, seconds = asked[name]
                count += t - since < seconds
    return count
