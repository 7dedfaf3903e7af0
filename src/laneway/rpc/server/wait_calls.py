"""The calls of remote workers about waits, sub-jobs and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol
from uuid import UUID

from laneway.config.settings import Settings
from laneway.domain.bounds import check_priority_bound, narrowest
from laneway.engine.run.sub_jobs import SubJobs
from laneway.errors import InvalidInput, QuotaExceeded
from laneway.rpc import wait_messages
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc.messages import ANSWERS
from laneway.rpc.server.auth import Authenticator, Context
from laneway.rpc.server.dispatch_server import DispatchServer
from laneway.rpc.server.ownership import OwnedAttempt
from laneway.rpc.server.served_calls import ServedCall, ServedCalls
from laneway.rpc.server.stream_caller import StreamCaller
from laneway.store import handler_waits, quotas
from laneway.store.database import Database
from laneway.store.handler_waits import SubJobsWrite
from laneway.store.quotas import Quota
from laneway.store.statement import Statement

KEPT: Final = "kept"


class _AboutAttempt(Protocol):
    @property
    def worker_id(self) -> str: ...
    @property
    def claim(self) -> pb.Claim: ...


class WaitCalls(ServedCalls):
    """Stores and reads what handlers of remote workers wait for."""

    def __init__(
        self, dispatch: DispatchServer, authenticator: Authenticator, settings: Settings
    ) -> None:
        super().__init__(dispatch, authenticator, settings)
        # A separate connection: a thousand sub-jobs must not delay progress of other attempts.
        self._waits = Database(dispatch.database.dsn, settings, role="waits", size=1)
        self._sub_jobs = SubJobs(None, self._limits, self._waits.run)

    async def close(self) -> None:
        await super().close()
        await self._waits.close()

    async def ReadWaits(self, _: object, context: Context) -> pb.ReadWaitsResponse:
        async with self._begin(context, "ReadWaits", pb.ReadWaitsRequest) as call:
            one = await self._owned(call, call.request)
            if one is None:
                return pb.ReadWaitsResponse(answer=pb.ANSWER_FENCED)
            (found,) = await self._waits.run(handler_waits.read([one.claim]))
        waits = [wait_messages.write_stored(each) for each in found]
        return pb.ReadWaitsResponse(answer=pb.ANSWER_ACCEPTED, waits=waits)

    async def BeginWait(self, _: object, context: Context) -> pb.BeginWaitResponse:
        async with self._begin(context, "BeginWait", pb.BeginWaitRequest) as call:
            wait = wait_messages.read_new(call.request)
            one = await self._owned(call, call.request)
            if one is None:
                return pb.BeginWaitResponse(answer=pb.ANSWER_FENCED)
            if self._writes_too_often(one):
                return pb.BeginWaitResponse()
            kept = await self._waits.run(handler_waits.begin(one.claim, wait))
        return pb.BeginWaitResponse(
            answer=ANSWERS[kept.answer],
            state=wait_messages.STATES[kept.state],
            result=kept.result or "",
        )

    async def SubmitSubJobs(self, _: object, context: Context) -> pb.SubmitSubJobsResponse:
        async with self._begin(context, "SubmitSubJobs", pb.SubmitSubJobsRequest) as call:
            request = call.request
            jobs = await self._read(wait_messages.read_jobs, request, self._limits)
            one = await self._owned(call, request)
            if one is None:
                return pb.SubmitSubJobsResponse(answer=pb.ANSWER_FENCED)
            quota = self._check_reach(call.caller, request, jobs)
            if self._writes_too_often(one):
                return pb.SubmitSubJobsResponse()
            entries = await self._sub_jobs.entries(jobs, request.offset)
            statement = handler_waits.submit_sub_jobs(
                one.claim, request.name, request.total, request.offset, entries
            )
            ids = [entry[0] for entry in entries]
            kept = await self._within_quota(call.caller, quota, statement, ids)
        if kept.job_types:
            self._dispatch.announce(set(kept.job_types))
        return pb.SubmitSubJobsResponse(answer=ANSWERS[kept.answer], stored=kept.stored or 0)

    async def ReadResults(self, _: object, context: Context) -> pb.ReadResultsResponse:
        async with self._begin(context, "ReadResults", pb.ReadResultsRequest) as call:
            request = call.request
            if request.after < 0:
                raise InvalidInput("after", "must be 0 or more")
            one = await self._owned(call, request)
            if one is None:
                return pb.ReadResultsResponse(answer=pb.ANSWER_FENCED)
            if request.HasField("wait"):
                statement = handler_waits.sub_job_results(one.claim, request.wait, request.after)
            else:
                statement = handler_waits.results_of(one.claim, request.after)
            rows = await self._waits.run(statement)
        results = wait_messages.write_results(rows)
        return pb.ReadResultsResponse(answer=pb.ANSWER_ACCEPTED, results=results)

    async def _owned(self, call: ServedCall[Any], request: _AboutAttempt) -> OwnedAttempt | None:
        (one,) = await self._find(call, request.worker_id, [request.claim], "claim")
        return one

    def _writes_too_often(self, one: OwnedAttempt) -> bool:
        return bool(self._reports.take((one.claim.seq, one.claim.attempt)))

    async def _within_quota(
        self,
        caller: StreamCaller,
        quota: Quota | None,
        statement: Statement[SubJobsWrite],
        ids: list[UUID],
    ) -> SubJobsWrite:
        """Store sub-jobs, counted against the grants of the worker's principal."""
        if quota is None or not ids:
            return await self._waits.run(statement)
        try:
            return await self._store_counted(quota, statement, ids)
        except QuotaExceeded as error:
            # Jobs that have started since are no longer counted after a sweep.
            if not await self._waits.run(quotas.sweep(quota.principal_id)):
                raise _named(error, caller) from None
        try:
            return await self._store_counted(quota, statement, ids)
        except QuotaExceeded as error:
            raise _named(error, caller) from None

    async def _store_counted(
        self, quota: Quota, statement: Statement[SubJobsWrite], ids: list[UUID]
    ) -> SubJobsWrite:
        async with self._waits.transaction() as transaction:
            kept = await transaction.run(statement)
            if kept.answer == KEPT:
                # Those that are not stored now are not counted: a duplicate, or a repeated call.
                await transaction.run(quotas.charge(quota, ids))
        return kept

    def _check_reach(
        self,
        caller: StreamCaller,
        request: pb.SubmitSubJobsRequest,
        jobs: Sequence[Sequence[Any]],
    ) -> Quota | None:
        """Refuse jobs that the token does not cover; return the quota that they count against."""
        lanes = {one.job_type: self._dispatch.lane_of(one.job_type) for one in request.jobs}
        for i, one in enumerate(request.jobs, request.offset):
            lane = lanes[one.job_type]
            if not (caller.may_claim_in(lane) and caller.may_run(one.job_type)):
                raise InvalidInput(
                    f"jobs[{i}].job_type",
                    f"{one.job_type} is in the lane {lane}: the worker's token covers"
                    f" {caller.coverage}",
                )
        bounds = {name: caller.bounds_in(lane) for name, lane in lanes.items()}
        for i, (job_type, _, options) in enumerate(jobs, request.offset):
            place = f"jobs[{i}].options.priority"
            check_priority_bound(options.get("priority"), bounds[job_type], place)
        least = narrowest(bounds.values())
        return Quota(caller.principal_id, least) if least.needs_counting else None


def _named(error: QuotaExceeded, caller: StreamCaller) -> QuotaExceeded:
    """The error with the bound as its field, and the principal that it is about."""
    return QuotaExceeded(
        f"{error.bound}: sub-jobs count for {caller.name}, the principal of their worker: its"
        f" {str(error).removeprefix('your ')}",
        error.retry_after,
        bound=error.bound,
        limit=error.limit,
    )
