"""Laneway: as `pip install laneway` and `laneway worker app:lw` give it, and tuned."""

import os
from pathlib import Path

from bench.peers.environments import Venv
from bench.peers.system import ROOT, System

_SETTLED = "not exists (select from laneway.ready) and not exists (select from laneway.lease)"


def _system(name: str, settings: str, lock: str, *options: str) -> System:
    environment = Venv(name.replace(" ", "-"), lock=ROOT / "requirements" / lock)
    return System(
        name=name,
        language="Python",
        broker="postgres",
        environment=environment,
        program=Path(__file__).with_name("program.py"),
        work=[
            *(str(environment.python), "-m", "laneway", "worker"),
            *("bench.peers.systems.laneway.app:lw", *options),
        ],
        # The packages are installed; Laneway itself is this checkout.
        variables={"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])},
        settings=settings,
        gives_up="",
        settled=_SETTLED,
        pace=25_000,
        schema="laneway",
    )


SYSTEMS = [
    _system("laneway", "`pip install laneway`, `laneway worker app:lw`: all defaults", "core.txt"),
    _system(
        "laneway tuned", "with uvloop, `--concurrency 1000`", "uvloop.txt", "--concurrency=1000"
    ),
]
