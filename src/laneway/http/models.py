"""Answers of the server that no other door has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from laneway.domain.bulk import BulkVerb
from laneway.domain.job import Job
from laneway.domain.states import TERMINAL, Status
from laneway.domain.storage import Storage


@dataclass(frozen=True, slots=True)
class Submitted:
    """What became of one job of a batch."""

    id: UUID
    job_type: str
    status: Status
    duplicate: bool


@dataclass(frozen=True, slots=True)
class JobStanding:
    """Where a job stands."""

    id: UUID
    job_type: str
    lane: str
    workspace: str
    status: Status
    priority: int
    attempt: int
    claimed_by: UUID | None
    worker: str | None
    cancel_requested_at: datetime | None


@dataclass(frozen=True, slots=True)
class BulkPreview:
    """What an order would do; `is_more`: counting stopped at `matched`."""

    verb: BulkVerb
    dry_run: bool
    matched: int
    is_more: bool
    sample: list[UUID]
    upto: int


@dataclass(frozen=True, slots=True)
class BulkRun:
    """How far an order has come: running, done, failed, or interrupted."""

    id: UUID
    verb: BulkVerb
    state: str
    done: int
    refused: dict[str, int]
    ordered_by: str
    started_at: datetime
    updated_at: datetime

    @property
    def is_over(self) -> bool:
        return self.state != "running"


@dataclass(frozen=True, slots=True)
class Reached:
    """Jobs that fulfil all of what is not None."""

    owner: str | None
    workspace: str | None
    lanes: list[str] | None


@dataclass(frozen=True, slots=True)
class Me:
    """Whoever the token belongs to, and by permission the jobs it covers."""

    id: UUID
    name: str
    kind: Literal["person", "service"]
    permissions: dict[str, list[Reached]]
    csrf: str | None
    # What workers:claim is narrowed to; None: any type.
    job_types: list[str] | None = None

    def allows(self, permission: str) -> bool:
        """Whether there is anything this permission covers."""
        return permission in self.permissions


@dataclass(frozen=True, slots=True)
class Health:
    """The server answers."""

    status: str


@dataclass(frozen=True, slots=True)
class Readiness:
    """The server can serve; `listener` says how its streams hear of changes made elsewhere."""

    status: str
    database: str
    schema: str
    listener: str


@dataclass(frozen=True, slots=True)
class DatabaseState:
    """The database, and how the replica that answered is connected to it.

    `connection` is direct or pooled; without `listens` the replica only polls, by its settings;
    `listener` is listening, polling or off.
    """

    storage: Storage
    connection: str
    listens: bool
    listener: str


# -- what happens -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Opened:
    """A stream of topics begins, or goes on; unless `resumed`, fetch anew what is shown."""

    resumed: bool
    topics: list[str]


@dataclass(frozen=True, slots=True)
class JobsChanged:
    """Many jobs changed at once, or some may have: fetch anew what is shown."""

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


Happened = Job | Opened | JobsChanged | ControlChanged | Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened: `name` says what, `id` resumes after it.

    `data` is a job as it was by then for `job.…`; plain values where this version knows no better.
    """

    id: str | None
    name: str
    data: Happened

    @property
    def job(self) -> Job | None:
        """The job, where it is about one."""
        return self.data if isinstance(self.data, Job) else None

    @property
    def is_last(self) -> bool:
        """Whether the job has ended."""
        return self.job is not None and self.job.status in TERMINAL
