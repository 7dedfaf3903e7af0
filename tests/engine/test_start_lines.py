"""Log lines at the start of a worker: what it serves, and each job type with its lane."""

from __future__ import annotations

import logging

import pytest
from psycopg.conninfo import make_conninfo

from laneway import Analysis, Approval, Context, Laneway, SyncContext, __version__
from laneway.domain.redaction import redact_dsn
from tests.support.worker_harness import WorkerHarness

DEFAULT = "the default: no lane lists it; `laneway lanes move greet LANE` moves it"
SEEDED = (
    "the lane's row, as seeded; `laneway lanes load plain` replaces all lanes by four without job"
    " types"
)


def lines(caplog: pytest.LogCaptureFixture, level: int = logging.INFO) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "laneway" and r.levelno == level]


async def test_start_line_names_version_database_lanes_types_and_room(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.handler("greet", lane="docs")
    async def greet(ctx: Context) -> None: ...

    @harness.lw.handler("ingestion")
    def ingest(ctx: SyncContext) -> None: ...

    caplog.set_level(logging.INFO, "laneway")
    worker = await harness.start_worker_with({"concurrency": 7, "threads": 3})
    assert (
        f"worker {worker.name} serves docs, interactive: laneway {__version__}, database"
        f" {redact_dsn(harness.dsn)}, 2 job types, concurrency 7, threads 3" in lines(caplog)
    )


async def test_password_is_not_in_start_line(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.handler("greet")
    async def greet(ctx: Context) -> None: ...

    caplog.set_level(logging.INFO, "laneway")
    lw = Laneway(make_conninfo(harness.dsn, sslpassword="hush-hush"))
    lw.handlers.add(greet.handler)
    await harness.start_worker(lw)
    await lw.close()
    assert "sslpassword=***" in caplog.text
    assert "hush-hush" not in caplog.text


async def test_each_job_type_is_listed_with_lane_slots_and_reason(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.handler("ingestion")
    async def by_row(ctx: Context) -> None: ...

    @harness.lw.handler("report", lane="docs")
    async def by_handler(ctx: Context) -> None: ...

    @harness.lw.handler("greet")
    async def by_default(ctx: Context) -> None: ...

    @harness.lw.handler("restore", lane="docs")
    async def overruled(ctx: Context) -> None: ...

    @harness.lw.handler("polish", lane="paint")
    async def drained(ctx: Context) -> None: ...

    harness.lane("paint", enabled=False, max_slots=3)
    caplog.set_level(logging.INFO, "laneway")
    await harness.start_worker()
    records = [r for r in caplog.records if hasattr(r, "slots")]
    assert [r.getMessage() for r in records] == [
        f"  greet      default      unbounded         {DEFAULT}",
        f"  ingestion  interactive  2 slots           {SEEDED}",
        "  polish     paint        3 slots, drained  the handler",
        "  report     docs         unbounded         the handler",
        "  restore    system       1 slot            the lane's row (the handler says docs)",
    ]  # fmt: skip
    caplog.clear()
    harness.lane("interactive", max_slots=5)
    await harness.start_worker()
    chosen = [one.getMessage() for one in caplog.records if hasattr(one, "slots")][1]
    assert chosen == "  ingestion  interactive  5 slots           the lane's row"
    first = vars(records[0])
    assert (first["job_type"], first["lane"], first["slots"], first["reason"]) == (
        "greet", "default", "unbounded", DEFAULT
    )  # fmt: skip


async def test_handler_whose_lane_loses_to_a_row_is_warned_of(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.handler("ingestion", lane="docs")
    async def overruled(ctx: Context) -> None: ...

    @harness.lw.handler("report", lane="docs")
    async def by_handler(ctx: Context) -> None: ...

    caplog.set_level(logging.INFO, "laneway")
    await harness.start_worker()
    assert [line for line in lines(caplog, logging.WARNING) if "ingestion" in line] == [
        (
            "job type ingestion is in the lane interactive of the database, its handler says docs,"
            " and the database decides. To change it: `laneway lanes move ingestion docs`"
        ),
    ]


@pytest.mark.parametrize(
    "by, only, level",
    [
        ("ann", None, logging.INFO),
        ("ann", frozenset({"docs"}), logging.WARNING),
        # The code has changed since a worker put the type there.
        ("worker old", None, logging.WARNING),
    ],
)
async def test_other_lane_is_a_warning_unless_an_operator_chose_it(
    harness: WorkerHarness,
    caplog: pytest.LogCaptureFixture,
    by: str,
    only: frozenset[str] | None,
    level: int,
) -> None:
    @harness.lw.handler("report", lane="docs")
    async def report(ctx: Context) -> None: ...

    harness.lane("docs")
    harness.lane("paint", job_types=["report"])
    harness.lane("paint", updated_by=by)
    caplog.set_level(logging.INFO, "laneway")
    await harness.start_worker(only_lanes=only)
    (found,) = [r for r in caplog.records if "is in the lane paint" in r.getMessage()]
    assert found.levelno == level


async def test_bound_of_an_approval_without_analysis_is_warned_of(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    bound = Approval(below_cost=5, currency="EUR")

    @harness.lw.handler("estimated", approval=bound)
    async def estimated(ctx: Context) -> None: ...

    @estimated.analyze
    async def plan() -> Analysis:
        return Analysis(cost=1, currency="EUR")

    @harness.lw.handler("unestimated", approval=bound)
    async def unestimated(ctx: Context) -> None: ...

    @harness.lw.handler("always", approval=True)
    async def always(ctx: Context) -> None: ...

    await harness.start_worker()
    (found,) = [line for line in lines(caplog, logging.WARNING) if "no analysis" in line]
    assert found.startswith("job type unestimated has no analysis, so no job is below the bound")


async def test_start_line_names_the_lane_of_analyses(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.handler("greet", approval=True)
    async def greet(ctx: Context) -> None: ...

    @greet.analyze
    async def plan() -> Analysis:
        return Analysis(plan="greet")

    caplog.set_level(logging.INFO, "laneway")
    await harness.start_worker()
    assert "serves analysis, default: laneway " in caplog.text


async def test_type_that_the_worker_does_not_serve_is_marked(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.handler("greet")
    async def greet(ctx: Context) -> None: ...

    @harness.lw.handler("restore")
    async def restore(ctx: Context) -> None: ...

    caplog.set_level(logging.INFO, "laneway")
    await harness.start_worker(only_lanes=frozenset({"system"}))
    assert "moves it; not served: it is not in --lanes" in caplog.text
    assert "serves system:" in caplog.text


async def test_many_job_types_are_counted_instead_of_listed(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    async def run(ctx: Context) -> None: ...

    for n in range(300):
        harness.lw.handler(f"type-{n:03}")(run)
    caplog.set_level(logging.INFO, "laneway")
    await harness.start_worker()
    assert len([r for r in caplog.records if hasattr(r, "slots")]) == 20
    assert lines(caplog)[-1].startswith("  … and 280 more job types: `laneway lanes ls`")
    assert "300 job types" in caplog.text


async def test_worker_without_handlers_warns_why(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "laneway")
    worker = await harness.start_worker()
    (warning,) = lines(caplog, logging.WARNING)
    assert warning.startswith(f"worker {worker.name} serves no lane (")
    assert "the application has no handlers: decorate functions with @lw.handler" in warning


async def test_pause_is_logged_at_start(
    harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    @harness.lw.handler("greet")
    async def greet(ctx: Context) -> None: ...

    harness.do("update laneway.control set paused = true")
    caplog.set_level(logging.INFO, "laneway")
    await harness.start_worker()
    assert "all claims are paused: jobs wait until `laneway resume`" in lines(
        caplog, logging.WARNING
    )
