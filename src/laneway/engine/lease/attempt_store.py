"""Reads and writes of running attempts: the interface, and its implementation by a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

from laneway.domain.claim import Claim
from laneway.domain.limit import Limit
from laneway.store import call_limits, leases, steps
from laneway.store.call_limits import LimitGrant
from laneway.store.database import Database
from laneway.store.leases import LogEntry, Report, Verdict, WriteResult
from laneway.store.missing_limits import NONE, KnownLimits
from laneway.store.steps import StepWrite


class AttemptStore(Protocol):
    """Fenced access to attempts: a write whose claim is superseded is refused as fenced.

    After DatabaseUnavailable the write may or may not have happened. Repeating it is safe.
    """

    # Whether handlers may end their jobs in their own transactions.
    @property
    def has_database(self) -> bool: ...

    async def settle(self, verdicts: Sequence[Verdict]) -> list[WriteResult]:
        """End attempts; return the answers other than a plainly accepted finish."""
        ...

    async def report(
        self, reports: Sequence[Report], lines: Sequence[LogEntry]
    ) -> list[WriteResult]:
        """Store progress, checkpoints and log lines; return the answers not plainly accepted."""
        ...

    async def read_steps(self, claim: Claim) -> dict[str, str]:
        """The finished steps of a job, by name, as JSON text."""
        ...

    async def keep_step(self, claim: Claim, name: str, result: str, took_s: float) -> StepWrite:
        """Store a step's result; return it as later attempts will read it."""
        ...

    async def acquire(
        self, claim: Claim, wants: Mapping[str, int], inside: Mapping[str, int]
    ) -> LimitGrant:
        """Acquire every limit up to the wanted count, or none."""
        ...

    async def release(self, claim: Claim, keeps: Mapping[str, int]) -> str:
        """Release holds beyond these counts; return given, fenced or busy."""
        ...


class DatabaseAttemptStore:
    """An AttemptStore over a direct database connection."""

    has_database: ClassVar[bool] = True

    def __init__(
        self, database: Database, by: str = "worker", declared: Mapping[str, Limit] = NONE
    ) -> None:
        """`by` creates limits that handlers name and the database lacks, as declared."""
        self._database = database
        self._known_limits = KnownLimits(database, by, declared)

    async def settle(self, verdicts: Sequence[Verdict]) -> list[WriteResult]:
        return await self._database.run(leases.settle(verdicts))

    async def report(
        self, reports: Sequence[Report], lines: Sequence[LogEntry]
    ) -> list[WriteResult]:
        return await self._database.run(leases.report(reports, lines))

    async def read_steps(self, claim: Claim) -> dict[str, str]:
        return await self._database.run(steps.read(claim))

    async def keep_step(self, claim: Claim, name: str, result: str, took_s: float) -> StepWrite:
        return await self._database.run(steps.save(claim, name, result, took_s))

    async def acquire(
        self, claim: Claim, wants: Mapping[str, int], inside: Mapping[str, int]
    ) -> LimitGrant:
        async with self._known_limits.using(wants):
            return await self._database.run(call_limits.acquire(claim, wants, inside))

    async def release(self, claim: Claim, keeps: Mapping[str, int]) -> str:
        return await self._database.run(call_limits.release(claim, keeps))
