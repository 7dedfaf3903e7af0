"""awa."""

from pathlib import Path

from bench.peers.environments import Venv
from bench.peers.system import System

SYSTEMS = [
    System(
        name="awa",
        language="Rust and Python",
        broker="postgres",
        environment=Venv("awa", ("awa-pg",)),
        program=Path(__file__).with_name("program.py"),
        settings="512 workers, queue storage",
        gives_up="",
        # Its view of jobs takes minutes for thousands of finished ones: compare its own counts.
        settled=(
            "(select coalesce(sum(next_lane_seq - first_lane_seq), 0) from awa.ready_segments)"
            " <= (select coalesce(sum(completed_count), 0) from awa.receipt_completion_batches)"
        ),
        pace=5_000,
    )
]
