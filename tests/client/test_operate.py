"""Operator verbs from an application, with and without an event loop."""

from __future__ import annotations

from laneway.client import Client
from laneway.control import lanes
from laneway.control.explain import explain


async def test_verb_runs_on_the_applications_database(client: Client) -> None:
    job = await client.submit("t")
    await client.operate(lanes.drain, "default", by="ann")
    explained = await client.operate(explain, job.id)
    assert "lane_disabled" in {reason.code for reason in explained.reasons}


def test_verb_runs_without_event_loop(plain_client: Client) -> None:
    job = plain_client.sync.submit("t")
    lane = plain_client.sync.operate(lanes.drain, "default", by="ann")
    assert (lane.enabled, lane.updated_by) == (False, "ann")
    assert plain_client.sync.operate(explain, job.id).id == job.id
