"""A handler in a child process that submits a job and waits for it."""

from __future__ import annotations

from laneway import Laneway, SyncContext
from tests.support.worker_harness import WorkerHarness

lw = Laneway("postgresql://unused@nowhere/nothing")


@lw.handler("process_parent", isolation="process", lane="narrow")
def process_parent(ctx: SyncContext, dsn: str) -> object:
    own = Laneway(dsn)
    try:
        return own.sync.submit("child", {}, tags=[str(ctx.job_id)]).wait()
    finally:
        own.sync.close()


def adopted_by(harness: WorkerHarness) -> None:
    """Let the harness run this handler in its children."""
    harness.lw.handlers.add(lw.handlers["process_parent"])
