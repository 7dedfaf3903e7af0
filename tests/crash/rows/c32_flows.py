"""C32: flows of random shape, while workers, operators and PostgreSQL are killed.

Operators in separate processes approve, reject, cancel, mend and retry jobs of these flows. The end
of every job is known in advance, and faults must not change it.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from tests.crash.flow_faults import FlowFaults, Operators
from tests.crash.flow_load import FlowLoad
from tests.crash.flow_plans import MEND
from tests.crash.row_run import RowRun, cancel_load, wait_until

FLOWS = 2000
KILLS, OPERATORS_KILLED, RESTARTS = 24, 8, 4
EVERY_S = 1.0
WORKERS = 3
DRAIN_S = 30.0


async def inject(run: RowRun) -> None:
    run.app = "tests.crash.flow_app:lw"
    load = FlowLoad(run)
    workers = [run.start_worker() for _ in range(WORKERS)]
    await run.ready(*workers)
    with Operators(run, 2) as operators:
        faults = FlowFaults(run, workers, operators)
        kinds = faults.shuffled(
            kill=run.count(KILLS, 2),
            operator=run.count(OPERATORS_KILLED, 1),
            restart=run.count(RESTARTS, 1),
        )
        feeding = asyncio.ensure_future(load.feed(run.count(FLOWS), len(kinds), EVERY_S))
        try:
            await faults.inject(kinds, EVERY_S)
            await feeding
        finally:
            await cancel_load(feeding)
        await wait_until(lambda: _is_over(run), DRAIN_S + 60, "the last flow ends", 0.1)
        await run.drain(DRAIN_S)


def _is_over(run: RowRun) -> bool:
    """Whether all jobs have ended, and the operators have nothing left to mend."""
    return run.waiting() == 0 and not run.ask(
        "select exists (select from laneway.outcome o join laneway.jobs j using (seq)"
        " join laneway.flows f on f.seq = j.flow where f.name = %s and o.status <> 'completed')",
        MEND,
    )


# What must hold -----------------------------------------------------------------------------------


def check(run: RowRun) -> None:
    result = run.result
    met = Counter(event.more["kind"] for event in run.history.of("fault"))
    result.must(
        "met: workers, operators and PostgreSQL killed",
        dict(met),
        held=all(met[kind] for kind in ("kill", "operator", "restart")),
    )
    reopened = len(run.history.of("reopened"))
    result.must("jobs retried by operators", reopened, held=reopened > 0)
    wrong = run.must_end_as_expected()
    _check_tables(run)
    flows = run.ask("select count(*) from laneway.flows")
    result.figures.update(
        flows=flows, flow_jobs=result.jobs, flow_faults=result.faults, flow_jobs_wrong=wrong
    )


def _check_tables(run: RowRun) -> None:
    """Nothing is left to do, and the sums of every flow are those of its jobs."""
    for law, query in {
        "work left by ended jobs": "select count(*) from laneway.arrivals",
        "open edges of completed jobs": "select count(*) from laneway.open_edges e"
        " join laneway.outcome o on o.seq = e.child where o.status = 'completed'",
        "countdowns unlike the open edges": "select count(*) from laneway.countdowns c where"
        " c.missing <> (select count(*) from laneway.open_edges e where e.child = c.seq)",
        "flows whose sums are wrong": "select count(*) from laneway.flows f"
        " cross join lateral laneway.flow_sums(f.seq) s"
        " cross join lateral (select count(*) as jobs,"
        " count(*) filter (where o.status = 'completed') as completed,"
        " count(*) filter (where o.status = 'failed') as failed,"
        " count(*) filter (where o.status = 'cancelled') as cancelled"
        " from laneway.links l left join laneway.outcome o using (seq) where l.flow = f.seq) j"
        " where (s.jobs, s.completed, s.failed, s.cancelled)"
        " is distinct from (j.jobs, j.completed, j.failed, j.cancelled)",
    }.items():
        wrong = run.ask(query)
        run.result.must(law, wrong, held=wrong == 0)
