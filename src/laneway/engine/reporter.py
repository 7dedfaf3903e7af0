"""Sends progress, checkpoints and log lines of a process together, fenced."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import ClassVar, NamedTuple

from laneway.domain.claim import Claim
from laneway.engine.complaints import Complaints
from laneway.engine.service import Service
from laneway.errors import DatabaseUnavailable, StaleAttempt
from laneway.store.database import Database
from laneway.store.leases import Answer, LogEntry, Report, report

MOST_LINES = 2000


class _Line(NamedTuple):
    claim: Claim
    number: int
    level: str
    message: str
    at: float


def merged(old: Report, new: Report) -> Report:
    """The newer report, with what only the older one said."""
    said = {name: value for name, value in new._asdict().items() if value is not None}
    return old._replace(**said)


class Reporter(Service):
    """The newest progress of a job wins, log lines all go; flushed when asked, else now and then."""

    name: ClassVar[str] = "reporter"

    def __init__(
        self,
        database: Database,
        complaints: Complaints,
        on_answer: Callable[[Answer], None],
        interval_s: float = 0.5,
    ) -> None:
        super().__init__(complaints)
        self._database = database
        self._on_answer = on_answer
        self._interval = interval_s
        self._reports: dict[Claim, Report] = {}
        self._lines: list[_Line] = []
        self._waiters: dict[Claim, list[asyncio.Future[None]]] = {}
        self._is_due = False

    def report(self, claim: Claim, new: Report) -> None:
        old = self._reports.get(claim)
        if old is not None:
            new = merged(old, new)
        self._reports[claim] = new
        self._wake.set()

    def line(self, claim: Claim, number: int, level: str, message: str) -> None:
        self._lines.append(_Line(claim, number, level, message, time.monotonic()))
        self._wake.set()

    def flush(self, claim: Claim) -> asyncio.Future[None]:
        """Done when all reported of this claim so far is stored; StaleAttempt if it is fenced."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(claim, []).append(future)
        self._is_due = True
        self._wake.set()
        return future

    async def run_once(self) -> float | None:
        if not (self._reports or self._lines or self._waiters):
            return None
        if not self._is_due and not self._is_stopping:
            # Gather what comes within the interval, unless somebody waits.
            self._is_due = True
            return self._interval
        self._is_due = False
        reports, self._reports = self._reports, {}
        lines, self._lines = self._lines[:MOST_LINES], self._lines[MOST_LINES:]
        waiters, self._waiters = self._waiters, {}
        now = time.monotonic()
        entries = [LogEntry(n.claim, n.number, n.level, n.message, now - n.at) for n in lines]
        try:
            answers = await self._database.run(report(list(reports.values()), entries))
        except DatabaseUnavailable:
            self._keep(reports, lines, waiters)
            self._is_due = True
            raise
        except Exception as error:
            for futures in waiters.values():
                for future in futures:
                    if not future.done():
                        future.set_exception(error)
            raise
        self._tell(reports, lines, waiters, answers)
        if self._waiters:
            self._is_due = True
        return 0 if self._is_due or self._lines else None

    def _keep(
        self,
        reports: dict[Claim, Report],
        lines: list[_Line],
        waiters: dict[Claim, list[asyncio.Future[None]]],
    ) -> None:
        newer, self._reports = self._reports, reports
        for claim, new in newer.items():
            self.report(claim, new)
        self._lines[:0] = lines
        for claim, futures in waiters.items():
            self._waiters.setdefault(claim, [])[:0] = futures

    def _tell(
        self,
        reports: dict[Claim, Report],
        lines: list[_Line],
        waiters: dict[Claim, list[asyncio.Future[None]]],
        answers: list[Answer],
    ) -> None:
        odd = {(a.seq, a.attempt): a for a in answers}
        busy = {key for key, a in odd.items() if a.answer == "busy"}
        if busy:
            self._keep(
                {c: r for c, r in reports.items() if (c.seq, c.attempt) in busy},
                [n for n in lines if (n.claim.seq, n.claim.attempt) in busy],
                {c: w for c, w in waiters.items() if (c.seq, c.attempt) in busy},
            )
            self._is_due = True
        for claim, futures in waiters.items():
            key = claim.seq, claim.attempt
            if key in busy:
                continue
            is_fenced = key in odd and odd[key].answer == "fenced"
            for future in futures:
                if future.done():
                    continue
                if is_fenced:
                    future.set_exception(
                        StaleAttempt(f"attempt {claim.attempt} of job {claim.job_id} is over")
                    )
                    # Nobody may be waiting any more; that is not worth a warning.
                    future.exception()
                else:
                    future.set_result(None)
        for answer in answers:
            if answer.answer != "busy":
                self._on_answer(answer)
