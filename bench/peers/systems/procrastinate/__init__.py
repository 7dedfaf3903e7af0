"""procrastinate."""

from pathlib import Path

from bench.peers.environments import Venv
from bench.peers.system import System

SYSTEMS = [
    System(
        name="procrastinate",
        language="Python",
        broker="postgres",
        environment=Venv("procrastinate", ("procrastinate",)),
        program=Path(__file__).with_name("program.py"),
        settings="concurrency 10 (100 where jobs wait), psycopg pool of 14",
        gives_up="fencing; a crashed worker's jobs wait until a task of the user retries them",
        settled="not exists (select from procrastinate_jobs where status in ('todo', 'doing'))",
        pace=500,
        multiply=(
            "insert into procrastinate_jobs (queue_name, task_name, priority, lock,"
            " queueing_lock, args, status, scheduled_at, attempts)"
            " select queue_name, task_name, priority, lock, queueing_lock, args, status,"
            " scheduled_at, attempts from procrastinate_jobs, generate_series(1, {n})"
        ),
    )
]
