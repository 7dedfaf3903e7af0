"""Settles the results of many calls together; each call waits for the answers to its results."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

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


class _Waiter(NamedTuple):
    """The place of one verdict's answer in a call; without a call nothing waits for it."""

    kind: str
    call: _WaitingCall | None
    place: int


class ResultBatcher:
    """Passes verdicts to the completer and its answers back."""

    def __init__(self, completer: Completer) -> None:
        self._completer = completer
        # By attempt: the kind of verdict that is being settled, and the call that waits for it.
        self._waiting: dict[Pair, _Waiter] = {}
        # Calls that sent a result again before it was answered.
        self._repeats: dict[Pair, list[_Waiter]] = {}

    @property
    def waiting(self) -> int:
        """The number of results that callers wait for."""
        repeats = sum(map(len, self._repeats.values()))
        return repeats + sum(one.call is not None for one in self._waiting.values())

    async def settle(self, verdicts: Sequence[Verdict], within_s: float) -> list[WriteResult]:
        """Settles verdicts; one answer each, in order. busy: not settled yet, send it again."""
        if not verdicts:
            return []
        call = _WaitingCall(verdicts)
        for place, verdict in enumerate(verdicts):
            pair = verdict.claim.seq, verdict.claim.attempt
            pending = self._waiting.get(pair)
            if pending is None:
                self._waiting[pair] = _Waiter(verdict.kind, call, place)
                self._completer.add(verdict)
            elif pending.kind == verdict.kind:
                repeat = _Waiter(verdict.kind, call, place)
                self._repeats.setdefault(pair, []).append(repeat)
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
            pair = verdict.claim.seq, verdict.claim.attempt
            pending = self._waiting.get(pair)
            if pending is not None and pending.call is call:
                self._waiting[pair] = pending._replace(call=None)
            if pair in self._repeats:
                self._repeats[pair] = [x for x in self._repeats[pair] if x.call is not call]

    def settled(self, verdicts: Sequence[Verdict], results: Mapping[Pair, WriteResult]) -> None:
        """Answers the calls of a batch; a verdict without a result is an accepted finish.

        The replica also releases attempts; their results answer no call.
        """
        kinds: dict[Pair, str] = {}
        several: dict[Pair, set[str]] = {}
        for verdict in verdicts:
            pair = verdict.claim.seq, verdict.claim.attempt
            first = kinds.setdefault(pair, verdict.kind)
            if first != verdict.kind:
                several.setdefault(pair, {first}).add(verdict.kind)
        for pair, kind in kinds.items():
            pending = self._waiting.get(pair)
            if pending is None or pending.kind not in several.get(pair, (kind,)):
                continue
            del self._waiting[pair]
            answer = results.get(pair) or WriteResult(*pair, "accepted", "completed")
            if pair in several:
                # One of them was stored; a repeated call gets its answer.
                answer = WriteResult(*pair, "busy")
            if pending.call is not None:
                pending.call.take(pending.place, answer)
            if pair in self._repeats:
                for one in self._repeats.pop(pair):
                    if one.call is not None:
                        one.call.take(one.place, answer)
