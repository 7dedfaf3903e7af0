"""python -m tests.conformance.run KIND [--only NAME,NAME]

Run the scenarios against one kind of worker, all at once, and print which laws did not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from laneway.embedded.postgres import EmbeddedPostgres
from laneway.store.migrate import migrate
from tests.conformance.environment import SHARED, Environment
from tests.conformance.scenario import KINDS, Scenario, load
from tests.conformance.scenario_run import ScenarioRun


async def run_all(
    kind: str, dsn: str, home: Path, scenarios: Sequence[Scenario]
) -> dict[str, list[str]]:
    """Run all scenarios; return the failures of each."""
    env = Environment(kind, dsn, home)
    env.prepare(scenarios)
    async with env.opened() as addresses:
        sharing = [one for one in scenarios if not one.has_own_worker]
        if sharing:
            lanes = [SHARED, *(one.slug for one in sharing if one.has_own_lane)]
            await env.start_worker(None, lanes, addresses)
        found = await asyncio.gather(*(ScenarioRun(env, one, addresses).run() for one in scenarios))
    return {one.name: wrong for one, wrong in zip(scenarios, found, strict=True)}


def scenarios_of(kind: str) -> list[Scenario]:
    """The scenarios that apply to a kind of worker."""
    return [one for one in load() if kind not in one.skip]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.run")
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--only", help="names of scenarios, with commas")
    options = parser.parse_args()
    chosen = scenarios_of(options.kind)
    if options.only:
        names = options.only.split(",")
        chosen = [one for one in chosen if one.name in names]
    home = Path(tempfile.mkdtemp(prefix="lw-conf-"))
    home.chmod(0o711)
    began = time.monotonic()
    with EmbeddedPostgres(home / "pg", settings={"fsync": "off"}) as postgres:
        migrate(postgres.dsn)
        found = asyncio.run(run_all(options.kind, postgres.dsn, home, chosen))
    shutil.rmtree(home / "pg")
    for one in chosen:
        print(f"{'FAIL' if found[one.name] else 'ok  '} {one.name}: {one.law}")
        for line in found[one.name]:
            print(f"       {line}")
    broken = sum(map(bool, found.values()))
    print(f"{len(found)} scenarios, {broken} broken, {time.monotonic() - began:.1f} s; {home}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
