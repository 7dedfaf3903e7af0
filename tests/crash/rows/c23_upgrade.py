"""C23: databases of landed versions are migrated under load, with kills on both sides."""

from __future__ import annotations

import psycopg
from psycopg.conninfo import make_conninfo

from tests.crash.row_run import RowRun
from tests.migration.landed import LANDED, Code
from tests.migration.upgrade import Outcome, Upgrade

KILLS = 10
LONGEST_SUBMIT_WAIT_S = 0.5


async def inject(run: RowRun) -> None:
    """Upgrade each version in a separate database; at a small scale only the newest."""
    outcomes = []
    for commit in LANDED[-run.count(len(LANDED)) :]:
        name = f"from_{commit}"
        with psycopg.connect(run.dsn, autocommit=True) as conn:
            conn.execute(f"create database {name} template template0".encode())
        sink = run.sink / name
        sink.mkdir()
        upgrade = Upgrade(
            Code(commit, run.sink),
            Code.now(),
            make_conninfo(run.dsn, dbname=name),
            sink,
            spoil=run.apply_mutant,
            kills=run.count(KILLS, 2) // 2,
            pauses_s=[run.random.uniform(0.2, 1.5) for _ in range(run.count(KILLS, 2) // 2)],
        )
        outcome = await upgrade.run()
        for _ in range(outcome.kills):
            run.fault(kind="kill")
        outcomes.append(outcome)
    _judge(run, outcomes)


def check(run: RowRun) -> None:
    """Nothing to check here: the jobs are in separate databases."""
    run.result.jobs = int(run.result.figures["upgrade_jobs"])


def _judge(run: RowRun, outcomes: list[Outcome]) -> None:
    result = run.result
    lost = [line for outcome in outcomes for line in outcome.lost]
    doubled = [line for outcome in outcomes for line in outcome.doubled]
    for outcome in outcomes:
        result.must(
            f"from {outcome.commit}: both versions work side by side",
            "; ".join(trouble.partition("\n")[0] for trouble in outcome.troubles)
            or f"migrated in {outcome.migrated_s:.1f} s",
            held=not outcome.troubles,
        )
    result.must("no job is lost", f"{len(lost)} {lost[:3]}", held=not lost)
    result.must("no job runs twice", f"{len(doubled)} {doubled[:3]}", held=not doubled)
    longest = max(outcome.longest_submit_wait_s for outcome in outcomes)
    result.must(
        f"no submit waits for more than {LONGEST_SUBMIT_WAIT_S:g} s",
        f"{longest:.3f} s",
        held=longest <= LONGEST_SUBMIT_WAIT_S,
    )
    result.must("processes were killed", result.faults, held=result.faults > 0)
    result.acked_lost += len(lost)
    result.figures |= {
        "upgrade_schemas": len(outcomes),
        "upgrade_jobs": sum(outcome.jobs for outcome in outcomes),
        "upgrade_lost": len(lost),
        "upgrade_doubled": len(doubled),
    }
