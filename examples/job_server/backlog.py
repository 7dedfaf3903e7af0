"""Submit many jobs over HTTP, and show how the fleet works them off.

python backlog.py http://127.0.0.1:8420 --jobs 100000

The token is in LANEWAY_TOKEN_FILE. Run it again after a crash: it continues, and no job is
submitted twice within a day.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path

from laneway.http import Client

BATCH = 1000


def batches(name: str, jobs: int) -> Iterator[tuple[str, list[dict[str, object]]]]:
    """Batches of jobs, each with a key by which the server recognises a repetition."""
    for start in range(0, jobs, BATCH):
        numbers = range(start, min(jobs, start + BATCH))
        yield (
            f"{name}-{start}-{jobs}",
            [
                {"job_type": "checksum", "payload": {"text": f"{name} {n}"}, "tags": [name]}
                for n in numbers
            ],
        )


def depth(client: Client) -> str:
    """The number of jobs that wait in the lane: counted up to 10,000, whatever waits there."""
    lane = client.get_lane("fleet")
    return f"{lane.depth}{'+' if lane.depth_is_capped else ''}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server")
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--name", default="backlog")
    parser.add_argument("--watch", action="store_true", help="show the waiting jobs until the end")
    given = parser.parse_args()
    token = Path(os.environ["LANEWAY_TOKEN_FILE"]).read_text("utf-8").strip()
    with Client(given.server, token) as client:
        for key, jobs in batches(given.name, given.jobs):
            client.submit_many(jobs, idempotency_key=key)
        # It comes last and starts first: the claim orders by priority, then by submit.
        urgent = client.submit(
            "checksum",
            {"text": "urgent"},
            priority=10,
            idempotency_key=f"{given.name}-urgent-{given.jobs}",
        )
        print(f"submitted {given.jobs} jobs, and the urgent {urgent.id}", flush=True)
        while given.watch and (left := depth(client)) != "0":
            print(f"{left} wait", flush=True)
            time.sleep(1)


if __name__ == "__main__":
    main()
