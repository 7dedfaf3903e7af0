"""The jobs that keep the demo moving."""

from __future__ import annotations

import asyncio
import random
from typing import Any
from uuid import uuid4

import pytest

from laneway.demo import trickle
from laneway.demo.events import EventLog, JobStates


class AllEnded(JobStates):
    """Jobs that have all ended, as the next read will find."""

    async def refresh(self) -> None:
        self._unfinished.clear()


class Client:
    """Says when a job is submitted."""

    def __init__(self) -> None:
        self.submitted = asyncio.Event()

    async def submit(self, *job: object, **options: object) -> Any:
        self.submitted.set()
        return Handle()


class Handle:
    def __init__(self) -> None:
        self.id = uuid4()


async def test_demo_without_a_terminal_submits_more_once_its_jobs_have_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trickle, "TRICKLE_S", 0)
    nothing: Any = None
    states = AllEnded(nothing)
    earlier: Any = [Handle() for _ in range(trickle.MOST_UNFINISHED + 1)]
    states.count(earlier)
    client: Any = Client()
    event_log = EventLog(lambda at, text: None)
    running = asyncio.create_task(trickle.trickle(client, event_log, states, random.Random(1)))
    await asyncio.wait_for(client.submitted.wait(), 60)
    running.cancel()
    await asyncio.wait({running})
