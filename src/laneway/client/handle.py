"""The result of a submit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from laneway.domain.job import Job
from laneway.domain.states import Status

if TYPE_CHECKING:
    from laneway.client.client import Client
    from laneway.client.sync import SyncClient


@dataclass(slots=True)
class JobHandle:
    """A submitted job and the verbs on it.

    `status` is its state at the submit. `duplicate`: a live job already held the unique_key, and
    this is that job. A job submitted with `conn=` exists once that transaction commits.
    """

    id: UUID
    job_type: str
    status: Status
    duplicate: bool
    _client: Client = field(repr=False, compare=False)

    async def wait(self, timeout: float | None = None) -> object:
        """The job's result; JobFailed if it fails or is cancelled, TimeoutError after `timeout`."""
        return await self._client.wait(self.id, timeout)

    async def get(self) -> Job:
        """The job as it is now, with its attempts."""
        return await self._client.get(self.id)

    async def cancel(self, reason: str | None = None) -> Status:
        """Cancels the job, or asks its worker to stop."""
        return await self._client.cancel(self.id, reason)


@dataclass(slots=True)
class SyncJobHandle:
    """A JobHandle whose verbs are plain calls."""

    id: UUID
    job_type: str
    status: Status
    duplicate: bool
    _client: SyncClient = field(repr=False, compare=False)

    def wait(self, timeout: float | None = None) -> object:
        """The job's result; JobFailed if it fails or is cancelled, TimeoutError after `timeout`."""
        return self._client.wait(self.id, timeout)

    def get(self) -> Job:
        """The job as it is now, with its attempts."""
        return self._client.get(self.id)

    def cancel(self, reason: str | None = None) -> Status:
        """Cancels the job, or asks its worker to stop."""
        return self._client.cancel(self.id, reason)
