"""What running work writes and reads about itself, wherever that is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

from laneway.domain.claim import Claim
from laneway.store import call_limits, leases, steps
from laneway.store.call_limits import LimitGrant
from laneway.store.database import Database
from laneway.store.leases import LogEntry, Report, Verdict, WriteResult
from laneway.store.steps import StepWrite


class AttemptStore(Protocol):
    """Every write names a Claim and is refused as fenced once another attempt runs.

    DatabaseUnavailable: whether it was written is not known, and it may be said again.
    """

    # Whether handlers may end their jobs in transactions of their own.
    @property
    def has_database(self) -> bool: ...

    async def settle(self, verdicts: Sequence[Verdict]) -> list[WriteResult]:
        """Ends attempts; answers only what is not a plainly accepted finish."""
        ...

    async def report(
        self, reports: Sequence[Report], lines: Sequence[LogEntry]
    ) -> list[WriteResult]:
        """Stores progress, checkpoints and log lines; answers those not plainly accepted."""
        ...

    async def read_steps(self, claim: Claim) -> dict[str, str]:
        """The finished steps of a job, by name, as JSON text."""
        ...

    async def keep_step(self, claim: Claim, name: str, result: str, took_s: float) -> StepWrite:
        """Keeps a step's result; answers it as it will be read."""
        ...

    async def acquire(
        self, claim: Claim, wants: Mapping[str, int], inside: Mapping[str, int]
    ) -> LimitGrant:
        """Lets the attempt hold each limit as often as wanted, all or none."""
        ...

    async def release(self, claim: Claim, keeps: Mapping[str, int]) -> str:
        """Gives back what the attempt holds beyond that; answers given, fenced or busy."""
        ...


class DatabaseAttemptStore:
    """The database itself."""

    has_database: ClassVar[bool] = True

    def __init__(self, database: Database) -> None:
        self._database = database

    async def settle(self, verdicts: Sequence[Verdict]) -> list[WriteResult]:
        return await self._database.run(leases.settle(verdicts))

    async def report(
        self, reports: Sequence[Report], lines: Sequence[LogEntry]
    ) -> list[WriteResult]:
        return await self._database.run(leases.report(reports, lines))

    async def read_steps(self, claim: Claim) -> dict[str, str]:
        return await self._database.run(steps.read(claim))

    async def keep_step(self, claim: Claim, name: str, result: str, took_s: float) -> StepWrite:
        return await self._database.run(steps.keep(claim, name, result, took_s))

    async def acquire(
        self, claim: Claim, wants: Mapping[str, int], inside: Mapping[str, int]
    ) -> LimitGrant:
        return await self._database.run(call_limits.acquire(claim, wants, inside))

    async def release(self, claim: Claim, keeps: Mapping[str, int]) -> str:
        return await self._database.run(call_limits.release(claim, keeps))
