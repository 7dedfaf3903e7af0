"""The metrics page for Prometheus."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import PlainTextResponse

from laneway.api.http.auth import Caller
from laneway.api.http.lane_scope import everywhere
from laneway.api.http.problems import errors
from laneway.api.http.read_slots import EXPENSIVE
from laneway.api.routes.health import ReadinessCheck
from laneway.control.cluster import ClusterState, survey
from laneway.domain.overview import LaneStatus, without_replacement
from laneway.errors import LanewayError, SchemaMismatch
from laneway.observability import metrics
from laneway.observability.counters import MAX_LANES, OTHER, PROCESS, Counters
from laneway.observability.metrics import Family, Samples
from laneway.observability.safe_logger import SafeLogger
from laneway.store.database import Database

log = SafeLogger("laneway.api")

router = APIRouter(tags=["health"])

# How long figures are reused, so that many scrapers cost as much as one.
FRESH_S: Final = 2.0

Figures = list[tuple[Family, Samples]]


class ClusterFigures:
    """Metrics of the cluster, read from the database at most every two seconds."""

    def __init__(
        self, database: Database, readiness: ReadinessCheck, counters: Counters = PROCESS
    ) -> None:
        self.counters = counters
        counters.pools.add(database)
        self._database = database
        self._readiness = readiness
        self._reading = asyncio.Lock()
        self._until = 0.0
        self._figures: Figures = []

    async def read(self) -> Figures:
        async with self._reading:
            if time.monotonic() >= self._until:
                self._figures = await self._query()
                self._until = time.monotonic() + FRESH_S
        return self._figures

    async def _query(self) -> Figures:
        try:
            await self._readiness.check()
            cluster = await survey(self._database)
        except SchemaMismatch:
            return [(metrics.DATABASE_UP, {(): 0}), (metrics.SCHEMA_CURRENT, {(): 0})]
        except LanewayError as error:
            log.warning("metrics of the cluster cannot be read: %s", error)
            return [(metrics.DATABASE_UP, {(): 0})]
        up: Figures = [(metrics.DATABASE_UP, {(): 1}), (metrics.SCHEMA_CURRENT, {(): 1})]
        return [*up, *figures_of(cluster)]


def figures_of(cluster: ClusterState) -> Figures:
    """The metrics of a cluster, with a bounded number of labels."""
    lanes = _by_name(cluster.lanes)
    running = [worker for worker in cluster.workers if worker.runs_jobs]
    workers = {
        "live": sum(worker.is_live for worker in running),
        "silent": len(without_replacement(running)),
        "stopped": sum(worker.state == "stopped" for worker in running),
    }
    return [
        (metrics.PAUSED, {(): cluster.is_paused}),
        (metrics.DEPTH, {(n,): sum(x.depth for x in of) for n, of in lanes.items()}),
        (
            metrics.DEPTH_CAPPED,
            {(n,): any(x.depth_is_capped for x in of) for n, of in lanes.items()},
        ),
        (
            metrics.OLDEST_WAIT,
            {(n,): max(x.oldest_wait_s or 0.0 for x in of) for n, of in lanes.items()},
        ),
        (metrics.SLOTS_USED, {(n,): sum(x.slots_used for x in of) for n, of in lanes.items()}),
        (metrics.SLOTS_MAX, {(n,): sum(map(_slots, of)) for n, of in lanes.items()}),
        (metrics.LANE_ENABLED, {(n,): all(x.lane.enabled for x in of) for n, of in lanes.items()}),
        (metrics.WORKERS, {(state,): count for state, count in workers.items()}),
        (metrics.WAITING, {(x.reason,): x.counted for x in cluster.open_work.waiting}),
        (
            metrics.OLDEST_WAITING,
            {(x.reason,): x.oldest_s or 0.0 for x in cluster.open_work.waiting},
        ),
        (metrics.OPEN_FLOWS, {(): cluster.open_work.flows}),
        (metrics.AWAITING_APPROVAL, {(): cluster.attention.awaiting_approval}),
        (metrics.FAILED, {(): cluster.attention.failed}),
        (metrics.SCHEDULES_STOPPED, {(): cluster.attention.stopped_schedules}),
        (metrics.TOKENS_EXPIRING, {(): cluster.expiring_tokens}),
        (metrics.LEADER_PRESENT, {(): any(x.is_leader and x.is_live for x in cluster.workers)}),
        (metrics.LAPSED, {(): cluster.lapsed}),
        (metrics.OLDEST_TRANSACTION, {(): cluster.oldest_transaction_s}),
    ]


def _by_name(lanes: Iterable[LaneStatus]) -> dict[str, list[LaneStatus]]:
    """Lanes by name; those beyond the bound share one name."""
    by_name: dict[str, list[LaneStatus]] = {}
    for status in sorted(lanes, key=lambda one: one.lane.name):
        name = status.lane.name if len(by_name) < MAX_LANES else OTHER
        by_name.setdefault(name, []).append(status)
    return by_name


def _slots(status: LaneStatus) -> float:
    return float("inf") if status.lane.max_slots is None else status.lane.max_slots


_PAGE: Final[dict[str, Any]] = {
    "description": "In the text format of Prometheus, or as OpenMetrics if the client accepts it",
    "content": {
        "text/plain": {"schema": {"type": "string"}},
        "application/openmetrics-text": {"schema": {"type": "string"}},
    },
}


@router.get(
    "/metrics",
    operation_id="read_metrics",
    dependencies=EXPENSIVE,
    response_class=PlainTextResponse,
    responses={200: _PAGE, **errors()},
)
async def read_metrics(
    request: Request, who: Annotated[Caller, Depends(everywhere("metrics:read"))]
) -> Response:
    """Return the metrics of the cluster and of this process, for Prometheus."""
    figures: ClusterFigures = request.app.state.cluster_figures
    counters = figures.counters
    counters.is_read = True
    page = metrics.page(
        [
            [family.metric(samples) for family, samples in await figures.read()],
            metrics.of_worker(counters),
            metrics.of_process(counters),
            metrics.of_server(counters, request.app.state.hub.open_streams),
        ]
    )
    body, content_type = page.text(request.headers.get("accept", ""))
    return Response(body, media_type=content_type)
