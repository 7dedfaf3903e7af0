"""Response types that only the HTTP API has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from laneway.domain.flow import Flow
from laneway.domain.job import Job
from laneway.domain.states import TERMINAL, Status
from laneway.domain.storage import Storage


@dataclass(frozen=True, slots=True)
class Submitted:
    """The result of one job of a batch."""

    id: UUID
    job_type: str
    status: Status
    duplicate: bool


@dataclass(frozen=True, slots=True)
class SubmittedFlow:
    """A submitted flow, and its jobs in the order of the request."""

    flow: Flow
    jobs: list[Submitted]

    @property
    def id(self) -> UUID:
        """The flow's id."""
        return self.flow.id


@dataclass(frozen=True, slots=True)
class PermissionScope:
    """The jobs that a permission covers: those that match every field that is not None."""

    owner: str | None
    workspace: str | None
    lanes: list[str] | None


@dataclass(frozen=True, slots=True)
class Me:
    """The principal of the token, and the jobs that each permission covers."""

    id: UUID
    name: str
    kind: Literal["person", "service"]
    permissions: dict[str, list[PermissionScope]]
    csrf: str | None
    # The job types that workers:claim covers; None means all.
    job_types: list[str] | None = None
    # None: never; also from an older server.
    token_expires_at: datetime | None = None
    # None: from an older server.
    server_version: str | None = None
    server_time: datetime | None = None

    def allows(self, permission: str) -> bool:
        """Whether the permission covers any job."""
        return permission in self.permissions


@dataclass(frozen=True, slots=True)
class Health:
    """The server responds."""

    status: str


@dataclass(frozen=True, slots=True)
class Readiness:
    """The server can serve; `listener` says how its streams learn of changes by other processes."""

    status: str
    database: str
    schema: str
    listener: str


@dataclass(frozen=True, slots=True)
class DatabaseState:
    """The database, and how the responding replica is connected to it.

    `connection` is direct or pooled. Without `listens` the settings make the replica poll only.
    `listener` is listening, polling or off.
    """

    storage: Storage
    connection: str
    listens: bool
    listener: str


# -- events ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Opened:
    """A stream of topics was opened or resumed. Unless `resumed`, refetch what you show."""

    resumed: bool
    topics: list[str]


@dataclass(frozen=True, slots=True)
class JobsChanged:
    """Many jobs changed or may have changed: refetch what you show."""

    change: str | None
    count: int | None
    workspace: str | None
    lane: str | None
    job_type: str | None


@dataclass(frozen=True, slots=True)
class ControlChanged:
    """A lane, limit, schedule or the pause gate was changed."""

    kind: str
    name: str | None
    by: str | None
    before: object
    after: object


EventData = Job | Flow | Opened | JobsChanged | ControlChanged | Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a stream; a stream can be resumed after its `id`.

    For `job.…`, `data` is the job right after the change; for unknown names, plain values.
    """

    id: str | None
    name: str
    data: EventData

    @property
    def job(self) -> Job | None:
        """The job of a `job.…` event."""
        return self.data if isinstance(self.data, Job) else None

    @property
    def flow(self) -> Flow | None:
        """The flow of a `flow.…` event."""
        return self.data if isinstance(self.data, Flow) else None

    @property
    def is_last(self) -> bool:
        """Whether the job has ended."""
        return self.job is not None and self.job.status in TERMINAL
