"""python -m tests.migration.upgrade_all [COMMIT,COMMIT]

Upgrade the schema of every landed version under load, next to its workers. Exits with 1 if an
upgrade failed, a job was lost or ran twice, or a submit waited for more than half a second.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import psycopg

from laneway.embedded.postgres import EmbeddedPostgres
from laneway.testing import faults
from tests.migration.landed import LANDED, ROOT, Code, HistoryMissing
from tests.migration.upgrade import Outcome, Upgrade

LONGEST_SUBMIT_WAIT_S = 0.5
FIGURES = ROOT / "bench" / "latest" / "upgrade.json"
SETTINGS = {"max_connections": "100", "dynamic_shared_memory_type": "mmap"}


def main() -> int:
    wanted = sys.argv[1].split(",") if len(sys.argv) > 1 else list(LANDED)
    faults.adopt_orphans()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    home = Path(tempfile.mkdtemp(prefix="lw-upgrade-"))
    home.chmod(0o711)  # as root, the server runs as another account
    try:
        codes = [Code(commit, home) for commit in wanted]
        with EmbeddedPostgres(home / "data", settings=SETTINGS) as postgres:
            outcomes = [asyncio.run(upgrade(code, postgres.dsn, home)) for code in codes]
    except HistoryMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    finally:
        faults.end_all(faults.descendants())
        shutil.rmtree(home, ignore_errors=True)
    return report(outcomes)


async def upgrade(code: Code, dsn: str, home: Path) -> Outcome:
    name = f"from_{code.commit}"
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(f"create database {name} template template0".encode())
    sink = home / f"{name}-sink"
    sink.mkdir()
    there = psycopg.conninfo.make_conninfo(dsn, dbname=name)
    outcome = await Upgrade(code, Code.now(), there, sink).run()
    print(
        f"{outcome.commit}: {outcome.jobs} jobs, {outcome.kills} kills, migrated in"
        f" {outcome.migrated_s:.1f} s after {outcome.waits} waits, longest submit"
        f" {outcome.longest_submit_wait_s:.3f} s, {len(outcome.lost)} lost,"
        f" {len(outcome.doubled)} doubled"
    )
    for trouble in (*outcome.troubles, *outcome.lost[:5], *outcome.doubled[:5]):
        print(f"  FAIL {trouble}")
    sys.stdout.flush()
    return outcome


def report(outcomes: list[Outcome]) -> int:
    figures = {
        "schemas": len(outcomes),
        "failed": sum(bool(outcome.troubles) for outcome in outcomes),
        "longest_submit_wait_s": round(max(o.longest_submit_wait_s for o in outcomes), 3),
        "lost": sum(len(outcome.lost) for outcome in outcomes),
        "doubled": sum(len(outcome.doubled) for outcome in outcomes),
    }
    for name, value in figures.items():
        print(f"[{name}] {value}")
    FIGURES.parent.mkdir(parents=True, exist_ok=True)
    FIGURES.write_text(json.dumps(figures, indent=2) + "\n")
    is_good = figures["failed"] == figures["lost"] == figures["doubled"] == 0
    return 0 if is_good and figures["longest_submit_wait_s"] <= LONGEST_SUBMIT_WAIT_S else 1


if __name__ == "__main__":
    sys.exit(main())
