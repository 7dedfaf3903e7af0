"""The result of a submit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic
from uuid import UUID

from typing_extensions import TypeVar

from laneway.domain.approval import analysis_of
from laneway.domain.job import Job
from laneway.domain.states import Status

if TYPE_CHECKING:
    from laneway.client.client import Client
    from laneway.client.sync import SyncClient

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True, default=Any)


@dataclass(slots=True)
class JobHandle(Generic[R_co]):
    """A submitted job and the verbs on it.

    `status` is its state at the submit. `duplicate`: a job already had the unique key, and this
    is that job. A job submitted with `conn=` exists once that transaction commits.
    """

    id: UUID
    job_type: str
    status: Status
    duplicate: bool
    _client: Client = field(repr=False, compare=False)
    _decode: Callable[[str], R_co] | None = field(default=None, repr=False, compare=False)

    async def wait(self, timeout: float | timedelta | None = None) -> R_co:
        """The job's result; JobFailed if it fails or is cancelled, TimeoutError after `timeout`.

        A handle of `ingest.submit` reads it by the return hint of the handler, one of
        `lw.submit` as JSON.
        """
        result: R_co = await self._client.wait(self.id, timeout, decode=self._decode)
        return result

    async def watch(self, timeout: float | timedelta | None = None) -> R_co:
        """Shows a progress bar until the job has ended, and returns what `wait` returns.

        A bar of HTML in a notebook, a bar on stderr in a terminal, lines on stderr elsewhere.
        """
        from laneway.client.progress_bar import Watch, progress_bar

        watch = Watch(self.id, timeout)
        with progress_bar() as draw:
            while not watch.has_ended:
                with watch.drawing(draw) as see:
                    see(await self.get())
                await asyncio.sleep(watch.pause_s())
        return await self.wait()

    async def get(self) -> Job:
        """The job as it is now, with its attempts."""
        return await self._client.get(self.id)

    async def cancel(self, reason: str | None = None) -> Status:
        """Cancels the job, or asks its worker to stop."""
        return await self._client.cancel(self.id, reason)

    def decoded_by(self, decode: Callable[[str], R] | None) -> JobHandle[R]:
        """The same job, whose result this function reads from its JSON text."""
        return JobHandle(self.id, self.job_type, self.status, self.duplicate, self._client, decode)

    def blocking(self, client: SyncClient) -> SyncJobHandle[R_co]:
        """The same job, with verbs that are plain calls."""
        return SyncJobHandle(
            self.id, self.job_type, self.status, self.duplicate, client, self._decode
        )


@dataclass(slots=True)
class SyncJobHandle(Generic[R_co]):
    """A JobHandle whose verbs are plain calls."""

    id: UUID
    job_type: str
    status: Status
    duplicate: bool
    _client: SyncClient = field(repr=False, compare=False)
    _decode: Callable[[str], R_co] | None = field(default=None, repr=False, compare=False)

    def wait(self, timeout: float | timedelta | None = None) -> R_co:
        """The job's result; JobFailed if it fails or is cancelled, TimeoutError after `timeout`."""
        result: R_co = self._client.wait(self.id, timeout, decode=self._decode)
        return result

    def watch(self, timeout: float | timedelta | None = None) -> R_co:
        """Shows a progress bar until the job has ended, and returns what `wait` returns.

        Works inside a running event loop too, such as that of a notebook, and blocks it.
        """
        from laneway.client.progress_bar import Watch, progress_bar

        watch = Watch(self.id, timeout)
        with progress_bar() as draw:
            while not watch.has_ended:
                with watch.drawing(draw) as see:
                    see(self.get())
                time.sleep(watch.pause_s())
        return self.wait()

    def get(self) -> Job:
        """The job as it is now, with its attempts."""
        return self._client.get(self.id)

    def cancel(self, reason: str | None = None) -> Status:
        """Cancels the job, or asks its worker to stop."""
        return self._client.cancel(self.id, reason)

    def decoded_by(self, decode: Callable[[str], R] | None) -> SyncJobHandle[R]:
        """The same job, whose result this function reads from its JSON text."""
        return SyncJobHandle(
            self.id, self.job_type, self.status, self.duplicate, self._client, decode
        )


def claim_types(handles: Iterable[JobHandle[Any] | SyncJobHandle[Any]]) -> set[str]:
    """The job types by which workers claim the jobs; analyses have separate ones."""
    return {
        analysis_of(job.job_type) if job.status == Status.PENDING else job.job_type
        for job in handles
        if not job.duplicate and job.status in (Status.PENDING, Status.APPROVED)
    }
