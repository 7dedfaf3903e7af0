"""The example of Sentry: failures of jobs arrive as events, without their payloads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.examples.collector import Collector, collector
from tests.integrations.examples.programs import Environment, client_of, free_port, until

pytestmark = pytest.mark.integration


def test_failures_of_jobs_arrive_at_sentry(dsn: str, tmp_path: Path) -> None:
    with collector() as sentry:
        address = f"http://key@127.0.0.1:{sentry.port}/7"
        shop = Environment(
            "sentry", "sentry", tmp_path, LANEWAY_DATABASE_URL=dsn, SENTRY_DSN=address
        )
        port = free_port()
        with (
            shop.start("-m", "flask", "--app=shop", "run", f"--port={port}") as server,
            shop.start("-m", "laneway", "worker", "shop:lw") as worker,
            client_of(server, port) as client,
        ):
            job_id = client.post("/orders/7").json()
            until(lambda: len(events(sentry)) >= 2, lambda: worker.output)
            assert worker.stop() == 0  # and sends what is left
        found = events(sentry)
        assert [each["level"] for each in found] == ["warning", "error"]
        for attempt, event in enumerate(found, 1):
            assert event["transaction"] == "charge"
            assert event["exception"]["values"][-1]["value"] == "order 7 was refused"
            assert event["tags"] == {
                "laneway.job_id": job_id, "laneway.job_type": "charge",
                "laneway.lane": "default", "laneway.attempt": str(attempt),
            }  # fmt: skip
        assert not any(b"4111-1111" in body for body in sentry.bodies)


def events(sentry: Collector) -> list[dict[str, Any]]:
    """The events of all envelopes that arrived; each has a header and items of two lines."""
    found = []
    for body in list(sentry.bodies):
        lines = body.split(b"\n")[1:]
        for head, item in zip(lines[::2], lines[1::2], strict=False):
            if head and json.loads(head).get("type") == "event":
                found.append(json.loads(item))
    return sorted(found, key=lambda each: str(each["timestamp"]))
