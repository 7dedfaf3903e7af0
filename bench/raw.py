"""The bare loop: Laneway's claim and settle statements on one connection, and nothing else."""

from __future__ import annotations

from uuid import UUID, uuid4

import psycopg

from bench import load, timing
from bench.app import NOOP
from bench.server import Conn, Database
from laneway.config.settings import Settings
from laneway.engine.claim.floors import Floors, all_ranges
from laneway.store import lanes
from laneway.store.database import connection_options, run_sync
from laneway.store.leases import Verdict, claim, settle

BATCHES = (300, 1000, 2000)
WARM_UP = 1000


def drain(database: Database, count: int, batch: int) -> float:
    """Jobs per second."""
    database.empty()
    with psycopg.connect(
        database.dsn, **connection_options(database.dsn, Settings(), "bench")
    ) as conn:
        load.fill(database, WARM_UP)
        worker = uuid4()
        _loop(conn, worker, batch)
        first, _ = load.fill(database, count)
        database.vacuum_and_checkpoint()
        _loop(conn, worker, batch)
    return timing.rate(database, first - 1, count)


def _loop(conn: Conn, worker: UUID, batch: int) -> None:
    version = run_sync(conn, lanes.read()).version
    floors = Floors()
    while True:
        ranges = all_ranges(floors, [(NOOP, 1)])
        answer = run_sync(conn, claim(worker, "default", version, batch, ranges, [batch]))
        assert answer.state == "ok", answer.state
        if not answer.assignments:
            return
        floors.learn(answer)
        verdicts = [
            Verdict(one.claim, "finish", "null", None, None, 0.0) for one in answer.assignments
        ]
        odd = run_sync(conn, settle(verdicts))
        assert not odd, odd[:3]
