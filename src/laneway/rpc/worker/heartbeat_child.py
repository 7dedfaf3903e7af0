"""The heartbeat process of a remote worker: renews leases by calls instead of statements."""

from __future__ import annotations

import os
from typing import Any, Final
from uuid import UUID

import grpc

from laneway.engine.lease.heartbeat_child import Renew, serve
from laneway.engine.lease.heartbeat_wire import Pair
from laneway.engine.process.memory import resident_bytes
from laneway.errors import DatabaseUnavailable, Forbidden, Unauthenticated
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc._generated import dispatch_pb2_grpc as pb_grpc
from laneway.rpc.worker.call_errors import failure_of
from laneway.rpc.worker.endpoint import Endpoint
from laneway.store.leases import WriteResult

LONGEST_S: Final = 5.0
# Accepted renewals need no answer.
_ANSWERS: Final = {
    pb.ANSWER_UNSPECIFIED: "busy",
    pb.ANSWER_FENCED: "fenced",
    pb.ANSWER_CANCEL_REQUESTED: "cancel_requested",
}


class Renewals:
    """Calls one replica, and the next one if it does not answer."""

    def __init__(self, endpoint: Endpoint, worker_id: str) -> None:
        self._endpoint = endpoint
        self._worker_id = worker_id
        self._at = 0
        self._stubs: dict[str, Any] = {}

    def renew(self, pairs: list[Pair], job_ids: list[bytes], within_s: float) -> list[WriteResult]:
        """Renews leases; returns the results that are not plainly accepted."""
        claims = [
            pb.Claim(job_id=str(UUID(bytes=job_id)), attempt=pair[1])
            for pair, job_id in zip(pairs, job_ids, strict=True)
        ]
        request = pb.HeartbeatRequest(
            worker_id=self._worker_id, claims=claims, memory_bytes=resident_bytes(os.getppid()) or 0
        )
        answers = self._call(request, min(LONGEST_S, within_s)).answers
        if len(answers) != len(pairs):
            raise DatabaseUnavailable(
                f"the server sent {len(answers)} answers for {len(pairs)} claims"
            )
        return [
            WriteResult(*pair, _ANSWERS[answer])
            for pair, answer in zip(pairs, answers, strict=True)
            if answer in _ANSWERS
        ]

    def _call(self, request: pb.HeartbeatRequest, timeout_s: float) -> pb.HeartbeatResponse:
        address = self._endpoint.addresses[self._at]
        if address not in self._stubs:
            self._stubs[address] = pb_grpc.DispatchServiceStub(self._channel(address))  # type: ignore[no-untyped-call]
        try:
            response: pb.HeartbeatResponse = self._stubs[address].Heartbeat(
                request, timeout=timeout_s, metadata=self._endpoint.token.metadata
            )
        except grpc.RpcError as error:
            failure = failure_of(address, error.code(), error.details())
            if isinstance(failure, (Unauthenticated, Forbidden)):
                self._endpoint.token.renew()
            else:
                self._at = (self._at + 1) % len(self._endpoint.addresses)
            raise failure from None
        return response

    def _channel(self, address: str) -> grpc.Channel:
        options = self._endpoint.options_to(address)
        if self._endpoint.is_plain_to(address):
            return grpc.insecure_channel(address, options=options)
        return grpc.secure_channel(address, self._endpoint.credentials(), options=options)


def by_call(config: dict[str, Any]) -> Renew:
    """A function that renews leases through a server."""
    return Renewals(Endpoint.of(config["endpoint"]), config["worker_id"]).renew


if __name__ == "__main__":
    serve(by_call)
