"""The calls of remote workers about waits, sub-jobs and results."""

from __future__ import annotations

from typing import Any, Protocol

from laneway.config.settings import Settings
from laneway.engine.run.sub_jobs import SubJobs
from laneway.errors import InvalidInput
from laneway.rpc import wait_messages
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc.messages import ANSWERS
from laneway.rpc.server.auth import Authenticator, Context
from laneway.rpc.server.dispatch_server import DispatchServer
from laneway.rpc.server.ownership import OwnedAttempt
from laneway.rpc.server.served_calls import ServedCall, ServedCalls
from laneway.rpc.server.stream_caller import StreamCaller
from laneway.store import handler_waits
from laneway.store.database import Database


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
            self._check_reach(call.caller, request)
            if self._writes_too_often(one):
                return pb.SubmitSubJobsResponse()
            entries = await self._sub_jobs.entries(jobs, request.offset)
            kept = await self._waits.run(
                handler_waits.submit_sub_jobs(
                    one.claim, request.name, request.total, request.offset, entries
                )
            )
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

    def _check_reach(self, caller: StreamCaller, request: pb.SubmitSubJobsRequest) -> None:
        """Refuse jobs of lanes and types that the token does not cover."""
        lanes = {one.job_type: self._dispatch.lane_of(one.job_type) for one in request.jobs}
        for i, one in enumerate(request.jobs, request.offset):
            lane = lanes[one.job_type]
            if not (caller.may_claim_in(lane) and caller.may_run(one.job_type)):
                raise InvalidInput(
                    f"jobs[{i}].job_type",
                    f"{one.job_type} is in the lane {lane}: the worker's token covers"
                    f" {caller.coverage}",
                )
