"""pgqueuer."""

from pathlib import Path

from bench.peers.environments import Venv
from bench.peers.system import System

SYSTEMS = [
    System(
        name="pgqueuer",
        language="Python",
        broker="postgres",
        environment=Venv("pgqueuer", ("pgqueuer[asyncpg]", "uvloop")),
        program=Path(__file__).with_name("program.py"),
        variables={"PEERS_BATCH": "500"},
        settings="batch_size 500, asyncpg, uvloop",
        gives_up="fencing; results",
        settled="not exists (select from pgqueuer)",
        pace=12_000,
    )
]
