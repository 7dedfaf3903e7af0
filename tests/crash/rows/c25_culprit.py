"""C25: jobs that kill their whole process, next to 100 jobs in the same processes."""

from __future__ import annotations

from tests.crash.row_run import RowRun

INNOCENT = 100
MS = 1500
PROCESSES = 2
MAX_RETRIES = 2
# Uncharged losses of one job; see laneway.record_shared_loss.
MAX_FREE = 5
WITHIN_S = 120.0


async def inject(run: RowRun) -> None:
    worker = run.start_worker(is_supervised=True, processes=PROCESSES)
    await run.ready(worker)
    count = run.count(INNOCENT, 20)
    async with run.client() as client:
        for kind in ("culprit", "hidden_culprit"):
            jobs = [run.job("quick", ms=MS) for _ in range(count // 2)]
            jobs.insert(count // 4, run.job(kind))
            await run.submit(client, *jobs)
        await run.drain_all(WITHIN_S)


def check(run: RowRun) -> None:
    types: dict[str, str] = dict(
        run.conn.execute("select id::text, job_type from laneway.jobs").fetchall()
    )
    innocent = [job for job in run.final.jobs.values() if types[job.job] == "quick"]
    done = sum(job.status == "completed" and job.retries == 0 for job in innocent)
    again = sum(job.attempt > 1 for job in innocent)
    run.result.faults += sum(job.attempt - 1 for job in innocent)
    run.result.must(
        "innocent jobs completed without charge",
        f"{done} of {len(innocent)}, {again} of them after a loss",
        held=done == len(innocent) and again > 0,
    )
    for job in run.final.jobs.values():
        if types[job.job] != "quick":
            bound = 1 + MAX_RETRIES + MAX_FREE
            run.result.must(
                f"{types[job.job]}: failed when its budget was spent",
                f"{job.status} after {job.attempt} starts, {job.retries} retries",
                held=job.status == "failed" and job.retries == MAX_RETRIES and job.attempt <= bound,
            )
