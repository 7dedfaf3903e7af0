"""celery with Redis."""

from pathlib import Path

from bench.peers.environments import Venv
from bench.peers.system import System

_NO_SNAPSHOTS = "Redis has no snapshots"
_NO_BACKLOG = "a million messages are a gigabyte of Redis's memory; a list is as fast at any length"

SYSTEMS = [
    System(
        name="celery + redis",
        language="Python",
        broker="redis",
        environment=Venv("celery", ("celery[redis]",)),
        program=Path(__file__).with_name("program.py"),
        settings=(
            "solo pool (100 threads where jobs wait), acks_late, prefetch 128, no results;"
            " Redis without persistence"
        ),
        gives_up="durability (a crash of Redis loses all jobs); transactions; history; fencing",
        settled='[["LLEN", "celery"], ["HLEN", "unacked"]]',
        pace=900,
        cannot={"backlog": _NO_BACKLOG, "held": _NO_SNAPSHOTS},
    )
]
