"""Run one row from an empty database to the verdict, and clean up."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import psycopg

from laneway.testing import recorder
from laneway.testing.violation import Violation
from tests.crash.clusters import Clusters
from tests.crash.mutants import Mutant
from tests.crash.observer import Observer
from tests.crash.processes import ROOT
from tests.crash.row_run import Result, RowRun, Stuck

HISTORIES = ROOT / "bench" / "latest"


@dataclass(frozen=True)
class Row:
    """A kind of fault: its title, a function that injects it, and a check after the end."""

    title: str
    inject: Callable[[RowRun], Awaitable[None]]
    check: Callable[[RowRun], None]
    is_durable: bool = False
    applies_mutant_itself: bool = False  # applies its mutant after its own preparation
    keeps_history: bool = True  # its database still has the recorded events at the end


async def run_row(
    row: Row,
    clusters: Clusters,
    scale: float,
    seed: int,
    mutant: Mutant | None = None,
    only: tuple[str, ...] = (),
    *,
    is_timed: bool = True,
) -> Result:
    """Run a row; `only` selects some of its kinds, where it has kinds."""
    began = time.monotonic()
    name = row.inject.__module__.rpartition(".")[2].partition("_")[0].upper().replace("C0", "C")
    home = f"{name}-{mutant.name.replace(' ', '-')}" if mutant else name
    with clusters.copy(home, is_durable=row.is_durable) as postgres:
        with psycopg.connect(postgres.dsn, autocommit=True) as conn:
            if mutant is not None and not row.applies_mutant_itself:
                mutant.apply(conn)
            recorder.install(conn)
        run = RowRun(name, postgres, clusters, scale, seed, home, only, is_timed=is_timed)
        run.apply_mutant = mutant.apply if mutant is not None else None
        if mutant is not None:
            run.app = mutant.app or run.app
            run.worker_settings |= mutant.environment
        try:
            with Observer(run.dsn) as observer:
                try:
                    await row.inject(run)
                except Stuck as stuck:
                    run.result.violations.append(Violation(name, None, str(stuck)))
            if row.keeps_history:
                run.judge(observer)
            row.check(run)
            if run.result.violations and mutant is None:
                path = HISTORIES / f"crash-{name}.jsonl"
                path.parent.mkdir(parents=True, exist_ok=True)
                run.history.save(path)
                run.result.lines.append(f"     the history is in {path.relative_to(ROOT)}")
        finally:
            await run.close()
    run.result.seconds = time.monotonic() - began
    return run.result
