"""Limits that remote attempts hold for a call, given back for them after the longest hold."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from laneway.domain.claim import Claim
from laneway.errors import LanewayError
from laneway.store import calls
from laneway.store.database import Database

log = logging.getLogger("laneway")

RETRY_S: Final = 1.0


class LimitHolds:
    """A worker that heartbeats but never releases a limit would keep it from all others."""

    def __init__(self, database: Database, longest_s: float) -> None:
        self._database = database
        self._longest_s = longest_s
        # What each attempt holds since its oldest grant, and when that ends.
        self._held: dict[Claim, tuple[set[str], asyncio.TimerHandle]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def granted(self, claim: Claim, names: Iterable[str]) -> None:
        found = self._held.get(claim)
        if found is not None:
            found[0].update(names)
            return
        loop = asyncio.get_running_loop()
        self._held[claim] = set(names), loop.call_later(self._longest_s, self._end, claim)

    def released(self, claim: Claim, names: Iterable[str]) -> None:
        """The attempt holds these no more."""
        found = self._held.get(claim)
        if found is None:
            return
        found[0].difference_update(names)
        if not found[0]:
            found[1].cancel()
            del self._held[claim]

    async def close(self) -> None:
        for _, timer in self._held.values():
            timer.cancel()
        self._held.clear()
        for task in self._ending:
            task.cancel()
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _end(self, claim: Claim) -> None:
        names, _ = self._held.pop(claim)
        task = asyncio.get_running_loop().create_task(self._give_back(claim, sorted(names)))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _give_back(self, claim: Claim, names: list[str]) -> None:
        while True:
            try:
                answer = await self._database.run(calls.release(claim, dict.fromkeys(names, 0)))
            except LanewayError:
                answer = "busy"
            if answer == "given":
                log.warning(
                    "job %s held %s for more than %g s: given back for it",
                    claim.job_id, ", ".join(names), self._longest_s,
                )  # fmt: skip
            if answer != "busy":
                return
            await asyncio.sleep(RETRY_S)
