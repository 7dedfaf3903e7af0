"""Plays one row from an empty database to the verdict, and leaves nothing behind."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import psycopg

from laneway.testing.checker import Violation
from tests.crash import witness
from tests.crash.clusters import Clusters
from tests.crash.observer import Observer
from tests.crash.processes import ROOT
from tests.crash.stage import Result, Stage, Stuck
from tests.crash.twins import Twin

HISTORIES = ROOT / "bench" / "latest"


@dataclass(frozen=True)
class Row:
    """A kind of fault, what is done, and what is looked at when all is over."""

    title: str
    play: Callable[[Stage], Awaitable[None]]
    look: Callable[[Stage], None]
    is_durable: bool = False
    spoils_itself: bool = False  # applies its twin when its database is ready for it
    keeps_history: bool = True  # what was seen in its database outlives the row


async def play_row(
    row: Row,
    clusters: Clusters,
    scale: float,
    seed: int,
    twin: Twin | None = None,
    only: tuple[str, ...] = (),
    *,
    is_timed: bool = True,
) -> Result:
    """`only` narrows a row to some of its kinds, where it has kinds."""
    began = time.monotonic()
    name = row.play.__module__.rpartition(".")[2].partition("_")[0].upper().replace("C0", "C")
    home = f"{name}-{twin.name.replace(' ', '-')}" if twin else name
    with clusters.copy(home, is_durable=row.is_durable) as postgres:
        with psycopg.connect(postgres.dsn, autocommit=True) as conn:
            if twin is not None and not row.spoils_itself:
                twin.apply(conn)
            witness.install(conn)
        stage = Stage(name, postgres, clusters, scale, seed, home, only, is_timed=is_timed)
        stage.spoil = twin.apply if twin is not None else None
        if twin is not None:
            stage.app = twin.app or stage.app
            stage.worker_settings |= twin.environment
        try:
            with Observer(stage.dsn) as observer:
                try:
                    await row.play(stage)
                except Stuck as stuck:
                    stage.result.violations.append(Violation(name, None, str(stuck)))
            if row.keeps_history:
                stage.judge(observer)
            row.look(stage)
            if stage.result.violations and twin is None:
                path = HISTORIES / f"crash-{name}.jsonl"
                path.parent.mkdir(parents=True, exist_ok=True)
                stage.history.save(path)
                stage.result.lines.append(f"     the history is in {path.relative_to(ROOT)}")
        finally:
            await stage.close()
    stage.result.seconds = time.monotonic() - began
    return stage.result
