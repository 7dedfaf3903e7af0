"""Operating from Python: `lw.lanes`, `lw.limits`, `lw.schedules`, `lw.jobs`, `lw.flows` …

    await lw.lanes.set("documents", enabled=False, by="ann")
    await lw.limits.rollback("openai", by="ann")
    failed = await lw.jobs.list(status="failed", lane="documents")

Every change takes `by`, the actor in the audit log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, Unpack
from uuid import UUID

from laneway.control import (
    approval,
    explain,
    flows,
    history,
    jobs,
    lanes,
    limits,
    schedules,
    webhooks,
)
from laneway.domain.change import Change
from laneway.domain.claim import parse_job_id
from laneway.domain.explanation import Explanation
from laneway.domain.filter import JobConditions, JobFilter
from laneway.domain.flow import (
    ChangedFlow,
    Flow,
    FlowFilter,
    FlowGraph,
    FlowStatus,
    check_flow_status,
)
from laneway.domain.job import Job
from laneway.domain.lane import Lane, LaneSettings, TunedLane
from laneway.domain.lane_setup import LaneSetup
from laneway.domain.limit import LimitSettings, LimitStatus, Tuned
from laneway.domain.overview import LaneDetail, LaneStatus
from laneway.domain.page import Page
from laneway.domain.schedule import RunNow, Schedule, ScheduleSettings, Slot
from laneway.domain.webhook import SavedWebhook, Webhook, WebhookSettings
from laneway.errors import InvalidInput, NotFound
from laneway.store.database import Database

_APPLICATION: Final = "application"
# `list` is a method below.
_Changes = list[Change]
_Lanes = list[LaneStatus]
_Limits = list[LimitStatus]
_Schedules = list[Schedule]
_Slots = list[Slot]
_Webhooks = list[Webhook]


class _Verbs:
    """Verbs on the database of an application, which is opened at the first use."""

    def __init__(self, database: Callable[[], Database]) -> None:
        self._database = database

    @property
    def _db(self) -> Database:
        return self._database()


class _Resource(_Verbs):
    """Named settings; each change is kept and can be rolled back."""

    _kind: str

    async def history(self, name: str, *, limit: int = 50, before: int | None = None) -> _Changes:
        """The kept changes, newest first; also of a deleted one."""
        return await history.history(self._db, self._kind, name, limit=limit, before=before)

    async def rollback(
        self, name: str, *, to: int | None = None, by: str = _APPLICATION
    ) -> Change | None:
        """Undo the newest change, or go back to the state after the change `to`."""
        return await history.rollback(self._db, self._kind, name, to=to, by=by)


class Lanes(_Resource):
    """The lanes: `lw.lanes`."""

    _kind = "lane"

    async def list(self) -> _Lanes:
        """Every lane with its use, by name."""
        return await lanes.inspect(self._db)

    async def get(self, name: str) -> LaneDetail:
        """One lane with its use, and its waiting jobs by type and priority."""
        return await lanes.get(self._db, name)

    async def create(
        self, name: str, *, by: str = _APPLICATION, **settings: Unpack[LaneSettings]
    ) -> Lane:
        """Create a lane; the settings not given have the defaults of new lanes."""
        return await lanes.create(self._db, {"name": name, **settings}, by=by)

    async def set(
        self, name: str, *, by: str = _APPLICATION, **change: Unpack[LaneSettings]
    ) -> TunedLane:
        """Change the given settings, in force at every worker's next claim."""
        return await lanes.tune(self._db, name, change, by=by)

    async def drain(self, name: str, *, by: str = _APPLICATION) -> TunedLane:
        """Claim nothing new in the lane; running jobs finish."""
        return await lanes.drain(self._db, name, by=by)

    async def resume(self, name: str, *, by: str = _APPLICATION) -> TunedLane:
        """Claim in the lane again."""
        return await lanes.resume(self._db, name, by=by)

    async def take(self, name: str, job_type: str, *, by: str = _APPLICATION) -> Lane:
        """Move a job type with its waiting jobs into the lane."""
        return await lanes.move_type(self._db, job_type, name, by=by)

    async def load(
        self, wanted: Sequence[Lane], *, dry_run: bool = False, by: str = _APPLICATION
    ) -> LaneSetup:
        """Make these the lanes, in one change; `dry_run` only returns the changes."""
        return await lanes.load(self._db, wanted, by=by, dry_run=dry_run)


class Limits(_Resource):
    """The limits: `lw.limits`."""

    _kind = "limit"

    async def list(self) -> _Limits:
        """Every limit with its use, by name."""
        return await limits.inspect(self._db)

    async def get(self, name: str) -> LimitStatus:
        """One limit with its use."""
        return await limits.get(self._db, name)

    async def set(
        self, name: str, *, by: str = _APPLICATION, **change: Unpack[LimitSettings]
    ) -> Tuned:
        """Change the given settings; creates the limit if there is none."""
        return await limits.tune(self._db, name, change, by=by)

    async def delete(self, name: str, *, by: str = _APPLICATION) -> None:
        """Delete a limit that no job type names."""
        await limits.delete(self._db, name, by=by)


class Schedules(_Resource):
    """The schedules: `lw.schedules`."""

    _kind = "schedule"

    def __init__(self, database: Callable[[], Database], known: schedules.KnownTypes) -> None:
        super().__init__(database)
        self._known = known

    async def list(self) -> _Schedules:
        """Every schedule, by name."""
        return await schedules.listing(self._db)

    async def get(self, name: str) -> Schedule:
        """One schedule."""
        return await schedules.get(self._db, name)

    async def set(
        self, name: str, *, by: str = _APPLICATION, **change: Unpack[ScheduleSettings]
    ) -> Schedule:
        """Change the given settings; creates the schedule if there is none."""
        return await schedules.put(self._db, name, change, by=by, known=self._known)

    async def enable(self, name: str, *, by: str = _APPLICATION) -> Schedule:
        """Submit its jobs again, from the next run on."""
        return await schedules.enable(self._db, name, by=by)

    async def disable(self, name: str, *, by: str = _APPLICATION) -> Schedule:
        """Submit no jobs until it is enabled."""
        return await schedules.disable(self._db, name, by=by)

    async def delete(self, name: str, *, by: str = _APPLICATION) -> None:
        """Delete the schedule; its jobs stay."""
        await schedules.delete(self._db, name, by=by)

    async def run(self, name: str, *, check: bool = False, by: str = _APPLICATION) -> RunNow:
        """Run the schedule once, now; with `check`, only if its check passes on a worker."""
        return await schedules.run_now(self._db, name, by=by, check=check)

    async def slots(self, name: str, *, limit: int = 50, before: datetime | None = None) -> _Slots:
        """Its slots with their outcomes, newest first."""
        return await schedules.slots(self._db, name, limit=limit, before=before)

    # The names of earlier versions.
    put, listing, run_now = set, list, run  # noqa: A003 - the methods, not the built-ins


class Webhooks(_Verbs):
    """The webhooks: `lw.webhooks`."""

    async def list(self) -> _Webhooks:
        """Every webhook, by name."""
        return await webhooks.inspect(self._db)

    async def get(self, name: str) -> Webhook:
        """One webhook."""
        return await webhooks.get(self._db, name)

    async def set(
        self, name: str, *, by: str = _APPLICATION, **change: Unpack[WebhookSettings]
    ) -> SavedWebhook:
        """Change the given settings; creates the webhook if there is none and `url` is given.

        A new webhook without a `secret` gets one, which only this result has.
        """
        try:
            if not change:
                await webhooks.get(self._db, name)
            return SavedWebhook(await webhooks.change(self._db, name, change, by=by))
        except NotFound:
            if "url" not in change:
                rule = f"is required for a new webhook: there is none named {name}"
                raise InvalidInput("url", rule) from None
        return await webhooks.create(self._db, name, change, by=by)

    async def rotate(self, name: str, *, by: str = _APPLICATION) -> SavedWebhook:
        """Replace the secret, which only this result has; both sign for 24 hours."""
        return await webhooks.rotate(self._db, name, by=by)

    async def test(self, name: str, *, by: str = _APPLICATION) -> UUID:
        """Send a test event once, also to a disabled webhook; the id of its job."""
        return (await webhooks.test(self._db, name, by=by)).job_id

    async def delete(self, name: str, *, by: str = _APPLICATION) -> None:
        """Delete the webhook; deliveries that wait are cancelled."""
        await webhooks.delete(self._db, name, by=by)


class Flows(_Verbs):
    """The flows: `lw.flows`."""

    async def list(
        self,
        *,
        name: str | None = None,
        status: FlowStatus | str | None = None,
        tag: str | None = None,
        workspace: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Flow]:
        """One page of flows, newest first, that meet all conditions."""
        chosen = None if status is None else check_flow_status(status)
        wanted = FlowFilter(name=name, status=chosen, tag=tag, workspace=workspace)
        return await flows.listing(self._db, wanted, limit=limit, cursor=cursor)

    async def get(
        self, flow_id: UUID | str, *, limit: int = 1000, cursor: str | None = None
    ) -> FlowGraph:
        """A flow with one page of its jobs, their states and what each comes after."""
        return await flows.graph(self._db, parse_job_id(flow_id), limit=limit, cursor=cursor)

    async def cancel(
        self, flow_id: UUID | str, reason: str | None = None, *, by: str = _APPLICATION
    ) -> ChangedFlow:
        """Cancel all its jobs that have not ended; running ones are asked to stop."""
        return await flows.cancel(self._db, parse_job_id(flow_id), by=by, reason=reason)

    async def retry(self, flow_id: UUID | str, *, by: str = _APPLICATION) -> ChangedFlow:
        """Queue its failed and cancelled jobs again."""
        return await flows.retry(self._db, parse_job_id(flow_id), by=by)

    async def reprioritize(
        self, flow_id: UUID | str, priority: int, *, by: str = _APPLICATION
    ) -> ChangedFlow:
        """Change the priority of its jobs that have not started."""
        return await flows.reprioritize(self._db, parse_job_id(flow_id), priority, by=by)


class Jobs(_Verbs):
    """The jobs, as an operator sees them: `lw.jobs`."""

    async def list(
        self, *, limit: int = 50, cursor: str | None = None, **wanted: Unpack[JobConditions]
    ) -> Page[Job]:
        """One page of jobs, newest first, that meet all conditions."""
        return await jobs.listing(self._db, JobFilter.of(wanted), limit=limit, cursor=cursor)

    async def get(self, job_id: UUID | str) -> Job:
        """The job with its newest attempts."""
        return await jobs.show(self._db, parse_job_id(job_id))

    async def explain(self, job_id: UUID | str) -> Explanation:
        """Every reason why the job is not running, and when it may start."""
        return await explain.explain(self._db, parse_job_id(job_id))

    async def cancel(
        self, job_id: UUID | str, reason: str | None = None, *, by: str = _APPLICATION
    ) -> Job:
        """Cancel a job that has not ended; a running one is asked to stop."""
        return await jobs.cancel(self._db, parse_job_id(job_id), by=by, reason=reason)

    async def approve(
        self,
        job_id: UUID | str,
        *,
        by: str,
        comment: str | None = None,
        seal: str | None = None,
    ) -> Job:
        """Approve a job; with the `seal` of a review, only if it has not changed since."""
        return await approval.approve(
            self._db, parse_job_id(job_id), by=by, comment=comment, seal=seal
        )

    async def reject(self, job_id: UUID | str, reason: str, *, by: str) -> Job:
        """Cancel a job that waits for approval, with the reason."""
        return await approval.reject(self._db, parse_job_id(job_id), by=by, reason=reason)

    async def retry(self, job_id: UUID | str, *, by: str = _APPLICATION) -> Job:
        """Queue a failed or cancelled job again, with a new retry budget."""
        return await jobs.retry(self._db, parse_job_id(job_id), by=by)

    async def run_now(self, job_id: UUID | str, *, by: str = _APPLICATION) -> Job:
        """Make a job due that waits for a time: delayed, snoozed, backing off or asleep."""
        return await jobs.run_now(self._db, parse_job_id(job_id), by=by)

    async def reprioritize(
        self, job_id: UUID | str, priority: int, *, by: str = _APPLICATION
    ) -> Job:
        """Change the priority of a job that waits."""
        return await jobs.reprioritize(self._db, parse_job_id(job_id), priority, by=by)

    async def delete(self, job_id: UUID | str, *, by: str = _APPLICATION) -> None:
        """Delete a job that has ended, with its history."""
        await jobs.delete(self._db, parse_job_id(job_id), by=by)
