"""Writes progress, checkpoints and log lines of all attempts of a process in fenced batches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from laneway.domain.claim import Claim
from laneway.engine.lease.attempt_store import AttemptStore
from laneway.engine.service import Service
from laneway.errors import DatabaseUnavailable, StaleAttempt
from laneway.observability.log_throttle import LogThrottle
from laneway.store.leases import LogEntry, Report, WriteResult

MAX_LINES = 2000
# The size of checkpoints in a batch, for the same reason as in completer.py.
MAX_CHARACTERS = 16_000_000
BUSY_S = 0.05


class _QueuedLine(NamedTuple):
    claim: Claim
    number: int
    level: str
    message: str
    at: float


Waiters = dict[Claim, list[asyncio.Future[None]]]


def merged(old: Report, new: Report) -> Report:
    """The newer report, completed with fields that only the older one has."""
    changed = {name: value for name, value in new._asdict().items() if value is not None}
    return old._replace(**changed)


@dataclass(frozen=True, slots=True)
class _Batch:
    """Reports and log lines sent together, and the futures that wait for them."""

    reports: dict[Claim, Report]
    lines: list[_QueuedLine]
    waiters: Waiters

    @property
    def claims(self) -> set[Claim]:
        return self.reports.keys() | {line.claim for line in self.lines} | self.waiters.keys()

    def of(self, claims: set[Claim]) -> _Batch:
        return _Batch(
            {c: r for c, r in self.reports.items() if c in claims},
            [line for line in self.lines if line.claim in claims],
            {c: w for c, w in self.waiters.items() if c in claims},
        )

    def entries(self) -> list[LogEntry]:
        now = time.monotonic()
        return [LogEntry(n.claim, n.number, n.level, n.message, now - n.at) for n in self.lines]

    def release(self, claim: Claim, error: Exception | None) -> None:
        for future in self.waiters.get(claim, ()):
            if future.done():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
                # Mark the exception as retrieved: the waiter may be gone.
                future.exception()


class Reporter(Service):
    """Stores the newest progress of each job and all log lines, per interval or on `flush`."""

    name: ClassVar[str] = "reporter"

    def __init__(
        self,
        store: AttemptStore,
        warnings: LogThrottle,
        on_answer: Callable[[WriteResult], None],
        interval_s: float = 0.5,
    ) -> None:
        super().__init__(warnings)
        self._store = store
        self._on_answer = on_answer
        self._interval = interval_s
        self._reports: dict[Claim, Report] = {}
        self._lines: list[_QueuedLine] = []
        self._waiters: Waiters = {}
        self._due_at: float | None = None
        self._is_closed = False

    def report(self, claim: Claim, new: Report) -> None:
        old = self._reports.get(claim)
        self._reports[claim] = new if old is None else merged(old, new)
        self._wake_in(self._interval)

    def line(self, claim: Claim, number: int, level: str, message: str) -> None:
        self._lines.append(_QueuedLine(claim, number, level, message, time.monotonic()))
        self._wake_in(self._interval)

    def flush(self, claim: Claim) -> asyncio.Future[None]:
        """A future that is done when this claim's reports so far are stored.

        It raises StaleAttempt if the claim is fenced.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(claim, []).append(future)
        if self._is_closed:
            self._fail_waiters()
        else:
            self._wake_in(0.0)
        return future

    async def cancel(self) -> None:
        await super().cancel()
        self._is_closed = True
        self._fail_waiters()

    def _fail_waiters(self) -> None:
        """Fail all waiters: a thread must not wait forever for a stopped worker."""
        left, self._waiters = _Batch({}, [], self._waiters), {}
        for claim in left.waiters:
            left.release(claim, StaleAttempt("the worker has stopped"))

    def _wake_in(self, delay_s: float) -> None:
        due_at = time.monotonic() + delay_s
        if self._due_at is None or due_at < self._due_at:
            self._due_at = due_at
            self._wake.set()

    async def run_once(self) -> float | None:
        if self._due_at is None:
            return None
        wait_s = self._due_at - time.monotonic()
        if wait_s > 0 and not self._is_stopping:
            # Collect reports for the interval, unless one is waited for.
            return wait_s
        self._due_at = None
        batch = self._take()
        try:
            await self._send(batch)
        except DatabaseUnavailable:
            self._put_back(batch, 0.0)
            raise
        if self._lines or self._waiters:
            self._wake_in(0.0)
        # Run another round at once: reports may have come during the write.
        return 0.0

    def _take(self) -> _Batch:
        reports = self._take_reports()
        lines, self._lines = self._lines[:MAX_LINES], self._lines[MAX_LINES:]
        waiters, self._waiters = self._waiters, {}
        # A claim with more than fits waits until the rest is stored too.
        left = self._reports.keys() | {line.claim for line in self._lines}
        for claim in left & waiters.keys():
            self._waiters[claim] = waiters.pop(claim)
        return _Batch(reports, lines, waiters)

    def _take_reports(self) -> dict[Claim, Report]:
        taken: dict[Claim, Report] = {}
        characters = 0
        for claim, report in self._reports.items():
            characters += len(report.checkpoint or "")
            if taken and characters > MAX_CHARACTERS:
                self._wake_in(0.0)
                break
            taken[claim] = report
        self._reports = dict(list(self._reports.items())[len(taken) :])
        return taken

    def _put_back(self, batch: _Batch, delay_s: float) -> None:
        """Put an unstored batch back, before everything that came since."""
        newer, self._reports = self._reports, dict(batch.reports)
        for claim, new in newer.items():
            self.report(claim, new)
        self._lines[:0] = batch.lines
        for claim, futures in batch.waiters.items():
            self._waiters.setdefault(claim, [])[:0] = futures
        self._wake_in(delay_s)

    async def _send(self, batch: _Batch) -> None:
        answers: list[WriteResult] = []
        try:
            if batch.reports or batch.lines:
                answers = await self._store.report(list(batch.reports.values()), batch.entries())
        except DatabaseUnavailable:
            raise
        except asyncio.CancelledError:
            self._put_back(batch, 0.0)
            raise
        except Exception as error:
            claims = batch.claims
            if len(claims) > 1:
                # Send each claim apart, so that one bad report does not fail the others.
                for claim in claims:
                    await self._send(batch.of({claim}))
                return
            self._warnings.warn(self.name, error)
            for claim in claims:
                batch.release(claim, error)
            return
        self._deliver(batch, answers)

    def _deliver(self, batch: _Batch, answers: list[WriteResult]) -> None:
        by_pair = {(a.seq, a.attempt): a.answer for a in answers}
        busy = {c for c in batch.claims if by_pair.get((c.seq, c.attempt)) == "busy"}
        for claim in batch.waiters.keys() - busy:
            is_fenced = by_pair.get((claim.seq, claim.attempt)) == "fenced"
            batch.release(claim, StaleAttempt(_stale_text(claim)) if is_fenced else None)
        if busy:
            # Another transaction locks these rows: retry soon.
            self._put_back(batch.of(busy), BUSY_S)
        loop = asyncio.get_running_loop()
        for answer in answers:
            if answer.answer != "busy":
                # After the waiters: StaleAttempt is more precise than a cancellation.
                loop.call_soon(self._on_answer, answer)


def _stale_text(claim: Claim) -> str:
    return f"attempt {claim.attempt} of job {claim.job_id} is over"
