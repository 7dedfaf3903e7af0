"""dramatiq with Redis."""

from pathlib import Path

from bench.peers.environments import Venv
from bench.peers.system import System

_NO_SNAPSHOTS = "Redis has no snapshots"
_NO_BACKLOG = "a million messages are a gigabyte of Redis's memory; a list is as fast at any length"

SYSTEMS = [
    System(
        name="dramatiq + redis",
        language="Python",
        broker="redis",
        environment=Venv("dramatiq", ("dramatiq[redis]",)),
        program=Path(__file__).with_name("program.py"),
        settings="32 threads (100 where jobs wait); Redis without persistence",
        gives_up="durability (a crash of Redis loses all jobs); transactions; history; fencing",
        settled='[["LLEN", "dramatiq:bench"], ["HLEN", "dramatiq:bench.msgs"]]',
        pace=2_500,
        cannot={"backlog": _NO_BACKLOG, "held": _NO_SNAPSHOTS},
    )
]
