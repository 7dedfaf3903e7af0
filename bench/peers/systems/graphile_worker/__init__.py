"""graphile-worker, batched and with its defaults."""

from pathlib import Path

from bench.peers.environments import Npm
from bench.peers.system import System


def _system(name: str, config: str, settings: str, gives_up: str, pace: int) -> System:
    return System(
        name=name,
        language="Node.js",
        broker="postgres",
        environment=Npm("graphile-worker", ("graphile-worker",)),
        program=Path(__file__).with_name("program.mjs"),
        variables={"PEERS_CONFIG": config},
        settings=settings,
        gives_up=gives_up,
        settled="not exists (select from graphile_worker._private_jobs)",
        pace=pace,
        schema="graphile",
    )


SYSTEMS = [
    _system(
        "graphile-worker batched",
        "batched",
        "localQueue 1000, completeJobBatchDelay 0, concurrentJobs 100 (1000 where jobs wait)",
        "fencing; history (a finished job is deleted); a crashed worker keeps its jobs for 4 hours",
        30_000,
    ),
    _system(
        "graphile-worker",
        "default",
        "defaults: one job at a time",
        "fencing; history (a finished job is deleted); a crashed worker keeps its job for 4 hours",
        1_500,
    ),
]
