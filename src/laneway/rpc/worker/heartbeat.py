"""Renews the leases of a remote worker by calls from a separate process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar
from uuid import UUID

from laneway.config.settings import Settings
from laneway.domain.claim import Claim
from laneway.engine.lease.heartbeat import Heartbeat
from laneway.engine.lease.heartbeat_wire import NAMED, Pair, pack
from laneway.observability.log_throttle import LogThrottle
from laneway.rpc.worker.endpoint import Endpoint


class RemoteHeartbeat(Heartbeat):
    """The heartbeat of a worker with a database, but the child also gets the jobs' ids."""

    child: ClassVar[str] = "laneway.rpc.worker.heartbeat_child"

    def __init__(
        self,
        endpoint: Endpoint,
        worker_id: UUID,
        settings: Settings,
        warnings: LogThrottle,
        on_answer: Callable[[int, int, str], None],
    ) -> None:
        renewal = {"endpoint": endpoint.to_dict(), "worker_id": str(worker_id)}
        super().__init__(renewal, settings, warnings, on_answer)
        self._job_ids: dict[Pair, bytes] = {}

    def hold(self, claims: list[Claim], lease_s: float, age_s: float = 0.0) -> None:
        for claim in claims:
            self._job_ids[claim.seq, claim.attempt] = claim.job_id.bytes
        super().hold(claims, lease_s, age_s)

    def forget(self, claims: Iterable[Claim]) -> None:
        gone = list(claims)
        super().forget(gone)
        for claim in gone:
            self._job_ids.pop((claim.seq, claim.attempt), None)

    def _pack(self, pairs: list[Pair], lease_s: float, age_s: float = 0.0) -> bytes:
        return pack(NAMED, pairs, lease_s, age_s, [self._job_ids[pair] for pair in pairs])

    def _drop(self, pair: Pair) -> None:
        super()._drop(pair)
        self._job_ids.pop(pair, None)
