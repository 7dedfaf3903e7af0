"""Settles the results of many calls together; each call waits for the answers to its results."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import Final

from laneway.engine.lease.completer import Completer
from laneway.errors import DatabaseUnavailable
from laneway.store.leases import Verdict, WriteResult

# The longest wait for the rest once some results are answered; a locked row must not delay others.
BUSY_S: Final = 1.0

Pair = tuple[int, int]


class _WaitingCall:
    """The answers that one caller waits for."""

    __slots__ = ("answers", "begun", "done", "left")

    def __init__(self, verdicts: Sequence[Verdict]) -> None:
        self.answers: list[WriteResult | None] = [None] * len(verdicts)
        self.left = len(verdicts)
        self.begun = asyncio.Event()
        self.done = asyncio.Event()

    def take(self, place: int, answer: WriteResult) -> None:
        self.answers[place] = answer
        self.left -= 1
        self.begun.set()
        if not self.left:
            self.done.set()

    async def wait(self, within_s: float) -> None:
        """Waits until all results are answered; after the first answer at most BUSY_S longer."""
        until = time.monotonic() + within_s
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self.begun.wait()
            async with asyncio.timeout(min(BUSY_S, until - time.monotonic())):
                await self.done.wait()


class ResultBatcher:
    """Passes verdicts to the completer and its answers back."""

    def __init__(self, completer: Completer) -> None:
        self._completer = completer
        # By attempt: the kind of verdict that is being settled, and the calls that wait for it.
        self._waiting: dict[Pair, tuple[str, list[tuple[_WaitingCall, int]]]] = {}

    @property
    def waiting(self) -> int:
        """The number of results that callers wait for."""
        return sum(len(waiting) for _, waiting in self._waiting.values())

    async def settle(self, verdicts: Sequence[Verdict], within_s: float) -> list[WriteResult]:
        """Settles verdicts; one answer each, in order. busy: not settled yet, send it again."""
        if not verdicts:
            return []
        call = _WaitingCall(verdicts)
        for place, verdict in enumerate(verdicts):
            pair = verdict.claim.seq, verdict.claim.attempt
            pending = self._waiting.get(pair)
            if pending is None:
                self._waiting[pair] = verdict.kind, [(call, place)]
                self._completer.add(verdict)
            elif pending[0] == verdict.kind:
                # Sent again before it was answered.
                pending[1].append((call, place))
            else:
                call.take(place, WriteResult(*pair, "fenced"))
        await call.wait(within_s)
        if call.left:
            self._leave(call, verdicts)
        if call.left == len(verdicts):
            raise DatabaseUnavailable("nothing was settled in time")
        return [
            answer or WriteResult(verdict.claim.seq, verdict.claim.attempt, "busy")
            for answer, verdict in zip(call.answers, verdicts, strict=True)
        ]

    def _leave(self, call: _WaitingCall, verdicts: Sequence[Verdict]) -> None:
        """Drops a call whose time is up; a caller that repeats it waits as a new call."""
        for verdict in verdicts:
            _, waiting = self._waiting.get((verdict.claim.seq, verdict.claim.attempt), ("", []))
            waiting[:] = [one for one in waiting if one[0] is not call]

    def settled(self, verdicts: Sequence[Verdict], results: Mapping[Pair, WriteResult]) -> None:
        """Answers the calls of a batch; a verdict without a result is an accepted finish.

        The replica also releases attempts; their results answer no call.
        """
        kinds: dict[Pair, set[str]] = {}
        for verdict in verdicts:
            kinds.setdefault((verdict.claim.seq, verdict.claim.attempt), set()).add(verdict.kind)
        for pair, settled in kinds.items():
            waited_for, waiting = self._waiting.get(pair, ("", ()))
            if waited_for not in settled:
                continue
            del self._waiting[pair]
            answer = results.get(pair) or WriteResult(*pair, "accepted", "completed")
            if len(settled) > 1:
                # One of them was stored; a repeated call gets its answer.
                answer = WriteResult(*pair, "busy")
            for call, place in waiting:
                call.take(place, answer)
