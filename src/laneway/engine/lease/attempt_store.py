"""Reads and writes of running attempts: the interface, and its implementation by a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from laneway.domain.claim import Claim
from laneway.domain.limit import Limit
from laneway.store import call_limits, handler_waits, leases, steps
from laneway.store.call_limits import LimitGrant
from laneway.store.database import Database
from laneway.store.handler_waits import EndedRow, NewWait, StoredWait, SubJobsWrite, WaitWrite
from laneway.store.leases import LogEntry, Report, Verdict, WriteResult
from laneway.store.missing_limits import NONE, KnownLimits
from laneway.store.steps import StepWrite

if TYPE_CHECKING:
    from laneway.engine.run.sub_jobs import SubJobs


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

    async def read_waits(self, claims: Sequence[Claim]) -> list[list[StoredWait]]:
        """The waits that the handler of each job asked for so far, in order."""
        ...

    async def begin_wait(self, claim: Claim, wait: NewWait) -> WaitWrite:
        """Store a sleep or a wait for an event, or look at the one of this name."""
        ...

    async def submit_sub_jobs(
        self, claim: Claim, name: str, total: int, offset: int, jobs: Sequence[Sequence[Any]]
    ) -> SubJobsWrite:
        """Store the sub-jobs of a wait that come after `offset` of `total`.

        Each is its job type, its payload as JSON text and its options. InvalidInput names the
        index of a wrong one.
        """
        ...

    async def sub_job_results(self, claim: Claim, name: str, after: int) -> list[EndedRow]:
        """The next results of the sub-jobs of a wait, in order."""
        ...

    async def results_of(self, claim: Claim, after: int) -> list[EndedRow]:
        """The next results of the jobs that a job came after, in order."""
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
        self,
        database: Database,
        by: str = "worker",
        declared: Mapping[str, Limit] = NONE,
        sub_jobs: SubJobs | None = None,
    ) -> None:
        """`by` creates limits that handlers name and the database lacks, as declared.

        `sub_jobs` checks sub-jobs; None: the store only settles.
        """
        self._database = database
        self._sub_jobs = sub_jobs
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

    async def read_waits(self, claims: Sequence[Claim]) -> list[list[StoredWait]]:
        return await self._database.run(handler_waits.read(claims))

    async def begin_wait(self, claim: Claim, wait: NewWait) -> WaitWrite:
        return await self._database.run(handler_waits.begin(claim, wait))

    async def submit_sub_jobs(
        self, claim: Claim, name: str, total: int, offset: int, jobs: Sequence[Sequence[Any]]
    ) -> SubJobsWrite:
        if self._sub_jobs is None:
            raise AssertionError("this store only settles")
        entries = await self._sub_jobs.entries(jobs, offset)
        statement = handler_waits.submit_sub_jobs(claim, name, total, offset, entries)
        return await self._database.run(statement)

    async def sub_job_results(self, claim: Claim, name: str, after: int) -> list[EndedRow]:
        return await self._database.run(handler_waits.sub_job_results(claim, name, after))

    async def results_of(self, claim: Claim, after: int) -> list[EndedRow]:
        return await self._database.run(handler_waits.results_of(claim, after))

    async def acquire(
        self, claim: Claim, wants: Mapping[str, int], inside: Mapping[str, int]
    ) -> LimitGrant:
        async with self._known_limits.using(wants):
            return await self._database.run(call_limits.acquire(claim, wants, inside))

    async def release(self, claim: Claim, keeps: Mapping[str, int]) -> str:
        return await self._database.run(call_limits.release(claim, keeps))
