"""oban for Python."""

from pathlib import Path

from bench.peers.environments import Venv
from bench.peers.system import System

SYSTEMS = [
    System(
        name="oban",
        language="Python",
        broker="postgres",
        environment=Venv("oban", ("oban",), oldest=(3, 12)),
        program=Path(__file__).with_name("program.py"),
        settings="queue limit 1000, pool of 10, uvloop",
        gives_up="fencing; its rescue runs any job of more than 5 minutes a second time",
        settled=(
            "not exists (select from oban_jobs where state in ('available', 'executing',"
            " 'scheduled', 'retryable'))"
        ),
        pace=2_500,
        multiply=(
            "insert into oban_jobs (state, queue, worker, args, meta, tags, attempt, max_attempts,"
            " priority, inserted_at, scheduled_at) select state, queue, worker, args, meta, tags,"
            " attempt, max_attempts, priority, inserted_at, scheduled_at"
            " from oban_jobs, generate_series(1, {n})"
        ),
    )
]
