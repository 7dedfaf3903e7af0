"""Says in the log which attempts failed and what becomes of their jobs, without flooding it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from typing import Final

from laneway.domain.text import visible
from laneway.engine.run import Run
from laneway.store.leases import Answer, Verdict

log = logging.getLogger("laneway")

# Of a job type; beyond that, one line a second tells how many, for as long as it goes on.
MOST: Final = 10
INTERVAL_S: Final = 1.0
_LONGEST: Final = 200
_FAILED: Final = frozenset({"fail", "giveup", "confirm"})


class Failures:
    """Remembers failed attempts until it is known whether they are tried again."""

    def __init__(self) -> None:
        self._noted: dict[tuple[int, int], tuple[Run, Verdict]] = {}
        self._spells: dict[str, _Spell] = {}

    def note(self, run: Run, verdict: Verdict) -> None:
        """Heeds a verdict that is about to be passed on."""
        if verdict.kind in _FAILED:
            self._noted[run.claim.seq, run.claim.attempt] = run, verdict

    def settled(self, verdicts: Sequence[Verdict], answers: Sequence[Answer]) -> None:
        """Tells of those that were noted, by what became of their jobs."""
        if not self._noted:
            return
        said = {(one.seq, one.attempt): one.status for one in answers}
        for verdict in verdicts:
            pair = verdict.claim.seq, verdict.claim.attempt
            noted = self._noted.pop(pair, None)
            status = said.get(pair)
            if noted is not None and status in ("failed", "approved", "pending"):
                self._tell(*noted, is_last=status == "failed")

    def close(self) -> None:
        """Tells at once what was held back."""
        for job_type, spell in self._spells.items():
            spell.timer.cancel()
            spell.tell(job_type)
        self._spells.clear()

    def _tell(self, run: Run, verdict: Verdict, *, is_last: bool) -> None:
        job_type = run.handler.job_type
        spell = self._spells.get(job_type)
        if spell is None:
            spell = self._spells[job_type] = _Spell(self._begin_spell(job_type))
        if spell.told < MOST:
            spell.told += 1
            log.log(
                logging.ERROR if is_last else logging.WARNING,
                "%s %s: attempt %s failed: %s; %s",
                _name(job_type),
                run.claim.job_id,
                run.claim.attempt,
                _error(verdict),
                "the job has failed" if is_last else f"again in {_wait_s(run, verdict):.3g} s",
            )
        else:
            spell.held_back += 1
            spell.ended += is_last
            spell.last = verdict

    def _begin_spell(self, job_type: str) -> asyncio.TimerHandle:
        loop = asyncio.get_running_loop()
        return loop.call_later(INTERVAL_S, self._end_spell, job_type)

    def _end_spell(self, job_type: str) -> None:
        spell = self._spells[job_type]
        if spell.held_back:
            spell.tell(job_type)
            spell.timer = self._begin_spell(job_type)
        else:
            del self._spells[job_type]


class _Spell:
    """A time in which a job type fails: its lines so far, and what was held back."""

    __slots__ = ("ended", "held_back", "last", "timer", "told")

    def __init__(self, timer: asyncio.TimerHandle) -> None:
        self.timer = timer
        self.told = self.held_back = self.ended = 0
        self.last: Verdict | None = None

    def tell(self, job_type: str) -> None:
        if self.last is not None:
            log.log(
                logging.ERROR if self.ended else logging.WARNING,
                "%s: %s more attempts failed, %s of them for good, the last by %s",
                _name(job_type),
                f"{self.held_back:,}",
                f"{self.ended:,}",
                _error(self.last),
            )
        self.held_back = self.ended = 0
        self.last = None


def _name(job_type: str) -> str:
    return f"analysis of {job_type[1:]}" if job_type.startswith("\x01") else job_type


def _error(verdict: Verdict) -> str:
    """Its type and message on one line, shortened."""
    told = json.loads(verdict.error) if verdict.error else {"type": "Error", "message": ""}
    text = visible(f"{told['type']}: {told['message'][:_LONGEST]}")
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _wait_s(run: Run, verdict: Verdict) -> float:
    """About how long the job waits: the database draws the jitter."""
    if verdict.delay_s is not None:
        return verdict.delay_s
    return run.handler.retry.delay(run.retries + 1, 0.5)
