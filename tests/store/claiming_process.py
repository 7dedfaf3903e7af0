"""A process that only claims jobs, and may be killed at any moment."""

from __future__ import annotations

import random
from uuid import UUID

import psycopg

from laneway.domain.claim import Claim
from laneway.errors import DatabaseUnavailable
from laneway.store import lanes, leases
from laneway.store.database import run_sync
from laneway.store.leases import MAX_RANK, MIN_RANK, Range, Verdict

ENDINGS = ("finish", "finish", "fail", "release")


def claim_forever(dsn: str, worker: UUID, lane: str, job_type: str, seed: int) -> None:
    """Claim jobs, keep some for a while and end the others in every way, until killed."""
    rng = random.Random(seed)
    both = [Range(job_type, 1, fresh, MIN_RANK, 0, MAX_RANK) for fresh in (False, True)]
    held: list[Claim] = []
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=0) as conn:
        version = 0
        while True:
            room = rng.choice([1, 3, 20])
            answer = run_sync(conn, leases.claim(worker, lane, version, room, both, [room]))
            if answer.state == "changed":
                version = run_sync(conn, lanes.read()).version
            held += [one.claim for one in answer.assignments]
            rng.shuffle(held)
            kept = len(held) // 2 if rng.random() < 0.5 else 0
            ended, held = held[kept:], held[:kept]
            if ended:
                verdicts = [Verdict(c, rng.choice(ENDINGS), delay_s=0) for c in ended]
                run_sync(conn, leases.settle(verdicts))


def claim_mixed_forever(
    dsn: str, worker: UUID, served: dict[str, list[str]], rooms: tuple[int, ...], seed: int
) -> None:
    """The same over several lanes, with jobs that need limits and keys; park some of them."""
    rng = random.Random(seed)
    held: list[Claim] = []
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=0) as conn:
        version = 0
        while True:
            lane, types = rng.choice(list(served.items()))
            room = rng.choice(rooms)
            ranges = [
                Range(t, 1, fresh, MIN_RANK, 0, MAX_RANK) for t in types for fresh in (False, True)
            ]
            try:
                answer = run_sync(conn, leases.claim(worker, lane, version, room, ranges, [room]))
            except DatabaseUnavailable as error:
                if not isinstance(error.__cause__, psycopg.errors.LockNotAvailable):
                    raise
                continue
            if answer.state == "changed":
                version = run_sync(conn, lanes.read()).version
            if answer.parked and rng.random() < 0.5:
                run_sync(conn, leases.park(types, 20))
            held += [one.claim for one in answer.assignments]
            rng.shuffle(held)
            kept = len(held) // 2 if rng.random() < 0.5 else 0
            ended, held = held[kept:], held[:kept]
            if ended:
                verdicts = [Verdict(c, rng.choice(ENDINGS), delay_s=0) for c in ended]
                run_sync(conn, leases.settle(verdicts))


def claim_in_file(dsn: str, worker: UUID, lane: str, job_type: str, jobs: int) -> None:
    """Claim and finish one job at a time until all have ended."""
    both = [Range(job_type, 1, fresh, MIN_RANK, 0, MAX_RANK) for fresh in (False, True)]
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=0) as conn:
        version = run_sync(conn, lanes.read()).version
        while True:
            answer = run_sync(conn, leases.claim(worker, lane, version, 5, both, [5]))
            for one in answer.assignments:
                run_sync(conn, leases.settle([Verdict(one.claim, "finish")]))
            ended = conn.execute("select count(*) from laneway.outcome").fetchone()
            if ended == (jobs,):
                return
