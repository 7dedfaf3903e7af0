"""A verb on all jobs that match a filter: request, preview and progress."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final
from uuid import UUID

from laneway.domain import verb_rules
from laneway.domain.annotations import HIDDEN, Doc
from laneway.domain.codec import to_json
from laneway.domain.filter import JobFilter
from laneway.domain.job import Job, check_priority
from laneway.domain.states import Status
from laneway.errors import InvalidInput, Refused


class BulkVerb(StrEnum):
    """A verb for many jobs at once."""

    CANCEL = "cancel"
    RETRY = "retry"
    DELETE = "delete"
    REPRIORITIZE = "reprioritize"
    APPROVE = "approve"
    REJECT = "reject"
    RUN_NOW = "run_now"


_WAITING: Final = (Status.WAITING, Status.PENDING, Status.AWAITING_APPROVAL, Status.APPROVED)
# The statuses that each verb takes, in the order in which jobs move, so that it misses none. All
# are tried unless the filter names one.
STATUSES: Final[dict[BulkVerb, tuple[Status, ...]]] = {
    BulkVerb.CANCEL: (*_WAITING, Status.RUNNING),
    BulkVerb.RETRY: (Status.FAILED, Status.CANCELLED),
    BulkVerb.DELETE: (Status.COMPLETED, Status.FAILED, Status.CANCELLED),
    BulkVerb.REPRIORITIZE: _WAITING,
    BulkVerb.APPROVE: (Status.AWAITING_APPROVAL,),
    BulkVerb.REJECT: (Status.AWAITING_APPROVAL,),
    BulkVerb.RUN_NOW: (Status.WAITING, Status.PENDING, Status.APPROVED),
}
# Cancelled jobs are retried only if the filter names that status.
_UNLESS_NAMED: Final = {BulkVerb.RETRY: (Status.FAILED,)}


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkRequest:
    """A verb, the jobs that it is for, and its arguments.

    An empty filter takes every job and needs `everything`. `reason` is stored with cancelled,
    rejected (where it is required) and approved jobs.
    """

    verb: BulkVerb
    wanted: JobFilter
    everything: bool = False
    reason: str | None = None
    priority: int | None = None

    def check(self, by: str) -> BulkRequest:
        """This request; InvalidInput or Refused names the rule that it breaks."""
        self.wanted.check()
        verb_rules.check_actor(by, self.reason)
        if self.wanted.is_empty and not self.everything:
            raise Refused(f"{self.verb} without a filter takes every job: set all to confirm that")
        allowed = STATUSES[self.verb]
        if self.wanted.status is not None and self.wanted.status not in allowed:
            raise InvalidInput("status", f"{self.verb} takes jobs that are {', '.join(allowed)}")
        if self.verb is BulkVerb.REJECT and not self.reason:
            raise InvalidInput("reason", "is required to reject")
        if self.verb is BulkVerb.REPRIORITIZE:
            check_priority(self.priority)
        return self

    @property
    def parts(self) -> list[JobFilter]:
        """The filter, once for every status that the verb takes.

        `run_now` takes jobs that wait for a time: delayed ones, and those whose handler sleeps.
        """
        wanted = self.wanted
        if self.verb is BulkVerb.RUN_NOW:
            wanted = replace(wanted, delayed=True)
        if wanted.status is not None:
            return [wanted]
        statuses = _UNLESS_NAMED.get(self.verb, STATUSES[self.verb])
        return [replace(wanted, status=status) for status in statuses]


@dataclass(frozen=True, slots=True)
class Preview:
    """The jobs that a request would change; `is_more`: counting stopped at the bound.

    `upto` is the number of the newest job. Given to `run`, it leaves newer jobs alone.
    """

    verb: BulkVerb
    matched: int
    is_more: bool
    sample: tuple[Job, ...]
    upto: int

    @property
    def count(self) -> str:
        """The number for people."""
        return f"{self.matched:,} or more" if self.is_more else f"{self.matched:,}"

    def to_dict(self) -> dict[str, Any]:
        ids = [job.id for job in self.sample]
        found = BulkPreview(self.verb, True, self.matched, self.is_more, ids, self.upto)
        shown: dict[str, Any] = to_json(found)
        return shown


@dataclass(frozen=True, slots=True)
class BulkPreview:
    """The result of a dry run."""

    schema_name: ClassVar = "Preview"

    verb: BulkVerb
    dry_run: bool
    matched: int
    is_more: Annotated[bool, Doc("Counting stopped at `matched`")]
    sample: list[UUID]
    upto: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkRun:
    """The progress of a bulk run."""

    id: UUID
    verb: BulkVerb
    state: Annotated[
        str, Doc("running, done, failed, or interrupted (its server is gone: send it again)")
    ]
    done: int
    refused: Annotated[dict[str, int], Doc("Number of refused jobs by reason")]
    ordered_by: str
    started_at: datetime
    updated_at: datetime
    # Known to the server only.
    principal_id: Annotated[UUID | None, HIDDEN] = None

    @property
    def is_over(self) -> bool:
        """True once the run has ended."""
        return self.state != "running"


@dataclass(slots=True)
class BulkProgress:
    """The progress of a request: jobs done, and jobs refused by reason.

    `asked_to_stop`: how many jobs were running when they were cancelled; None if not known.
    """

    verb: BulkVerb
    done: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    asked_to_stop: int | None = None

    def to_dict(self) -> dict[str, object]:
        shown: dict[str, object] = {
            "verb": self.verb.value,
            "dry_run": False,
            "done": self.done,
            "refused": dict(self.refused),
        }
        if self.asked_to_stop is not None:
            shown["asked_to_stop"] = self.asked_to_stop
        return shown
