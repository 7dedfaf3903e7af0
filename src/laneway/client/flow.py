"""Flows in Python: `lw.flow(…)`, async and sync.

async with lw.flow("nightly") as flow:
    pages = [flow.add(page, n=n) for n in range(200)]
    flow.add(join, after=pages)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, Unpack, cast, overload
from uuid import UUID

from typing_extensions import ParamSpec

from laneway.client.flow_draft import FlowDraft, FlowJobOptions, JobMaker
from laneway.client.handle import JobHandle, SyncJobHandle
from laneway.client.parents import JobRef
from laneway.client.spec import NewJobSpec
from laneway.domain.flow import ChangedFlow, Flow
from laneway.domain.not_a_job import problem_of_added
from laneway.domain.states import Status
from laneway.errors import InvalidInput, Refused

if TYPE_CHECKING:
    from laneway.client.client import Client
    from laneway.client.sync import SyncClient

P = ParamSpec("P")
R = TypeVar("R")
H = TypeVar("H", JobHandle[Any], SyncJobHandle[Any])


class _Jobs(Generic[H]):
    """The jobs of a flow, added inside its `with` block."""

    # `after=` refuses it by this, so that objects of users may have `jobs`.
    is_flow: ClassVar = True

    def __init__(
        self,
        draft: FlowDraft,
        make: Callable[[UUID, str, Callable[[str], Any] | None], H],
    ) -> None:
        self._draft = draft
        self._make: Callable[[UUID, str, Callable[[str], Any] | None], H] = make
        self._is_open = False
        self.jobs: list[H] = []

    @property
    def id(self) -> UUID:
        """The flow's id; the flow exists once its `with` block has ended."""
        return self._draft.id

    @property
    def name(self) -> str:
        return self._draft.name

    def _check_ended(self, what: str) -> None:
        if self._is_open:
            raise Refused(
                f"flow {self.name}: its `with` block has not ended, and stores its jobs then:"
                f" {what} after the block"
            )

    def _open(self) -> None:
        if self._is_open or self.jobs:
            raise Refused(f"flow {self.name}: its `with` block was entered before")
        self._is_open = True

    def _add(self, job: object, args: tuple[Any, ...], given: Mapping[str, Any]) -> H:
        if not self._is_open:
            raise Refused(f"flow {self.name}: jobs are added inside its `with` block")
        spec, options = _spec_of(job, args, given)
        handle = self._make(self._draft.add(spec, options), spec.job_type, spec.decode)
        self.jobs.append(handle)
        return handle

    def _settle(self, stored: Iterable[tuple[UUID, str, bool]]) -> None:
        """Gives each handle its stored job: another one if that is a duplicate."""
        for handle, (job_id, status, is_duplicate) in zip(self.jobs, stored, strict=True):
            handle.id, handle.status, handle.duplicate = job_id, Status(status), is_duplicate


class _ClientOfJobs:
    """The client of the handles of a flow: refuses their verbs until its block has ended."""

    def __init__(self, flow: _Jobs[Any], client: object) -> None:
        self._flow = flow
        self._client = client

    def __getattr__(self, verb: str) -> Any:
        self._flow._check_ended(f"call {verb} of a job")
        return getattr(self._client, verb)


def _spec_of(
    job: object, args: tuple[Any, ...], given: Mapping[str, Any]
) -> tuple[NewJobSpec[Any], Mapping[str, Any]]:
    if isinstance(job, NewJobSpec):
        if args:
            raise TypeError("flow.add: a NewJobSpec has its arguments already")
        return job, given
    if isinstance(job, str):
        if len(args) > 1:
            raise TypeError("flow.add: give the arguments of a job type as one payload")
        return NewJobSpec(job, *args), given
    if not hasattr(job, "flow_job"):
        raise InvalidInput("flow.add", problem_of_added(job))
    return cast("JobMaker[..., Any]", job).flow_job(args, given)


class FlowHandle(_Jobs[JobHandle[Any]]):
    """A flow: jobs that are submitted together, in one transaction, and the verbs on it.

    Nothing is stored if its block raises. With `conn=`, the flow exists once that transaction
    commits.
    """

    def __init__(
        self, client: Client, draft: FlowDraft, conn: object = None, wake: bool | None = None
    ) -> None:
        super().__init__(
            draft,
            lambda job_id, job_type, decode: JobHandle(
                job_id, job_type, Status.APPROVED, False, self._for_jobs, decode
            ),
        )
        self._client = client
        self._for_jobs = cast("Client", _ClientOfJobs(self, client))
        self._conn = conn
        self._wake = wake

    if not TYPE_CHECKING:

        def __enter__(self) -> Any:
            raise InvalidInput("flow", "write `async with lw.flow(…)`, or `with lw.sync.flow(…)`")

        def __exit__(self, *of: object) -> None: ...

    @property
    def _stored(self) -> Client:
        self._check_ended("call its verbs")
        return self._client

    async def __aenter__(self) -> Self:
        self._open()
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        self._is_open = False
        if kind is None:
            self._settle(await self._client.submit_flow(self._draft, conn=self._conn))
            if self._conn is None and self._wake is not False:
                self._client.wake(self.jobs)

    @overload
    def add(
        self, job: str, payload: object = None, /, **options: Unpack[FlowJobOptions]
    ) -> JobHandle[Any]: ...
    @overload
    def add(self, job: NewJobSpec[R], /, **options: Unpack[FlowJobOptions]) -> JobHandle[R]: ...
    @overload
    def add(self, job: JobMaker[P, R], /, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]: ...
    @overload
    def add(
        self, job: JobMaker[..., R], /, *args: Any, after: Iterable[JobRef], **more: Any
    ) -> JobHandle[R]: ...
    def add(self, job: object, /, *args: Any, **given: Any) -> JobHandle[Any]:
        """Adds a job: a handler with its arguments, `page.job(…)`, or a job type with a payload.

        Options: after (jobs of this flow or others), after_failure, name (within the flow), and
        those of `lw.submit` but workspace and created_by. A name that the handler takes is its
        argument: give that option by `page.options(…)`, or with `page.job(…)`. The handles can be
        waited for after the block.
        """
        return self._add(job, args, given)

    async def get(self) -> Flow:
        """The flow as it is now."""
        return await self._stored.get_flow(self.id)

    async def wait(self, timeout: float | timedelta | None = None) -> Flow:
        """The flow once all its jobs have ended.

        JobFailed unless all completed, TimeoutError after `timeout`.
        """
        return await self._stored.wait_flow(self.id, timeout)

    async def cancel(self, reason: str | None = None) -> ChangedFlow:
        """Cancels its jobs that have not ended; running ones are asked to stop."""
        return await self._stored.cancel_flow(self.id, reason)

    async def retry(self) -> ChangedFlow:
        """Queues its failed and cancelled jobs again."""
        return await self._stored.retry_flow(self.id)

    async def reprioritize(self, priority: int) -> ChangedFlow:
        """Changes the priority of its jobs that have not started."""
        return await self._stored.reprioritize_flow(self.id, priority)


class SyncFlowHandle(_Jobs[SyncJobHandle[Any]]):
    """A FlowHandle whose verbs are plain calls: `with lw.sync.flow(…) as flow:`."""

    def __init__(
        self, client: SyncClient, draft: FlowDraft, conn: object = None, wake: bool | None = None
    ) -> None:
        super().__init__(
            draft,
            lambda job_id, job_type, decode: SyncJobHandle(
                job_id, job_type, Status.APPROVED, False, self._for_jobs, decode
            ),
        )
        self._client = client
        self._for_jobs = cast("SyncClient", _ClientOfJobs(self, client))
        self._conn = conn
        self._wake = wake

    if not TYPE_CHECKING:

        async def __aenter__(self) -> Any:
            raise InvalidInput("flow", "write `with lw.sync.flow(…)`, or `async with lw.flow(…)`")

        async def __aexit__(self, *of: object) -> None: ...

    @property
    def _stored(self) -> SyncClient:
        self._check_ended("call its verbs")
        return self._client

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._is_open = False
        if kind is None:
            self._settle(self._client.submit_flow(self._draft, conn=self._conn))
            if self._conn is None and self._wake is not False:
                self._client.wake(self.jobs)

    @overload
    def add(
        self, job: str, payload: object = None, /, **options: Unpack[FlowJobOptions]
    ) -> SyncJobHandle[Any]: ...
    @overload
    def add(self, job: NewJobSpec[R], /, **options: Unpack[FlowJobOptions]) -> SyncJobHandle[R]: ...
    @overload
    def add(
        self, job: JobMaker[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> SyncJobHandle[R]: ...
    @overload
    def add(
        self, job: JobMaker[..., R], /, *args: Any, after: Iterable[JobRef], **more: Any
    ) -> SyncJobHandle[R]: ...
    def add(self, job: object, /, *args: Any, **given: Any) -> SyncJobHandle[Any]:
        """Adds a job: a handler with its arguments, `page.job(…)`, or a job type with a payload."""
        return self._add(job, args, given)

    def get(self) -> Flow:
        """The flow as it is now."""
        return self._stored.get_flow(self.id)

    def wait(self, timeout: float | timedelta | None = None) -> Flow:
        """The flow once all its jobs have ended; JobFailed unless all completed."""
        return self._stored.wait_flow(self.id, timeout)

    def cancel(self, reason: str | None = None) -> ChangedFlow:
        """Cancels its jobs that have not ended; running ones are asked to stop."""
        return self._stored.cancel_flow(self.id, reason)

    def retry(self) -> ChangedFlow:
        """Queues its failed and cancelled jobs again."""
        return self._stored.retry_flow(self.id)

    def reprioritize(self, priority: int) -> ChangedFlow:
        """Changes the priority of its jobs that have not started."""
        return self._stored.reprioritize_flow(self.id, priority)
