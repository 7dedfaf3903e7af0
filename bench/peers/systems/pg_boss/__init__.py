"""pg-boss."""

from pathlib import Path

from bench.peers.environments import Npm
from bench.peers.system import System

SYSTEMS = [
    System(
        name="pg-boss",
        language="Node.js",
        broker="postgres",
        environment=Npm("pg-boss", ("pg-boss", "pg-boss@12.35.0")),
        program=Path(__file__).with_name("program.mjs"),
        settings="batchSize 1000, localConcurrency 2, burstWhenBatchFull, LISTEN/NOTIFY",
        gives_up="fencing; a batch of 1,000 jobs ends as a whole, so one failure fails them all",
        settled="not exists (select from pgboss.job where state < 'completed')",
        pace=25_000,
    )
]
