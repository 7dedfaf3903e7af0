"""Laneway, as `laneway worker app:lw` gives it and tuned."""

import sys
from pathlib import Path

from bench.peers.environments import Own
from bench.peers.system import System

_HERE = Path(__file__).parent
_WORKER = [sys.executable, "-m", "laneway", "worker", "bench.peers.systems.laneway.app:lw"]
_SETTLED = "not exists (select from laneway.ready) and not exists (select from laneway.lease)"


def _system(name: str, settings: str, options: list[str]) -> System:
    return System(
        name=name,
        language="Python",
        broker="postgres",
        environment=Own(),
        program=_HERE / "program.py",
        work=[*_WORKER, *options],
        settings=settings,
        gives_up="",
        settled=_SETTLED,
        pace=25_000,
        schema="laneway",
    )


SYSTEMS = [
    _system("laneway", "`laneway worker app:lw`, all defaults", []),
    _system("laneway tuned", "`--concurrency 1000`", ["--concurrency=1000"]),
]
