"""Every metric there is: its name, its labels, what it means; and how a process tells its own.

Counters are of one process since it began. What is true of the whole cluster is read from the
database by the server, and is the same on each replica.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from prometheus_client import PROCESS_COLLECTOR
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import (
    CONTENT_TYPE_PLAIN_0_0_4,
    generate_latest,
)
from prometheus_client.openmetrics import exposition as openmetrics

from laneway import __version__
from laneway.observability.counters import Counters, Histogram

if TYPE_CHECKING:
    pass

log = logging.getLogger("laneway")

Kind = Literal["counter", "gauge", "histogram"]
Value = float | Histogram
Samples = Mapping[tuple[str, ...], Value]


@dataclass(frozen=True, slots=True)
class Family:
    """One metric; a counter's name ends in `_total`."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()

    def metric(self, samples: Samples) -> Metric:
        """It with these values, each under the values of its labels."""
        if self.kind == "histogram":
            histogram = HistogramMetricFamily(self.name, self.help, labels=self.labels)
            for labels, value in samples.items():
                if isinstance(value, Histogram):
                    histogram.add_metric(labels, _buckets(value), value.total)
            return histogram
        kind = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        made = kind(self.name, self.help, labels=self.labels)
        for labels, value in samples.items():
            if not isinstance(value, Histogram):
                made.add_metric(labels, value)
        return made


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    seen, buckets = 0, []
    counts = list(histogram.counts)
    for bound, count in zip((*histogram.bounds, math.inf), counts, strict=True):
        seen += count
        buckets.append(("+Inf" if bound == math.inf else repr(bound), float(seen)))
    return buckets


# Of a worker, wherever it runs: told by `laneway worker --metrics-port`, and by a server beside it.
CLAIMS: Final = Family("laneway_claims_total", "counter", "Jobs claimed by this process", ("lane",))
RUNNING: Final = Family(
    "laneway_running", "gauge", "Attempts this process holds, until their end is stored", ("lane",)
)
OUTCOMES: Final = Family(
    "laneway_outcomes_total",
    "counter",
    "Attempts that ended here: completed, failed, cancelled, retried, snoozed, released, analyzed,"
    " fenced or left",
    ("lane", "job_type", "outcome"),
)
DURATIONS: Final = Family(
    "laneway_job_duration_seconds", "histogram", "How long attempts ran", ("job_type",)
)
WAITS: Final = Family(
    "laneway_job_wait_seconds",
    "histogram",
    "How long jobs were due before their first claim, since metrics were first read",
    ("lane",),
)
LAPSES: Final = Family(
    "laneway_lapses_total",
    "counter",
    "Leases that this process, while it led, took back from workers that fell silent",
)
FENCED: Final = Family(
    "laneway_fenced_writes_total",
    "counter",
    "Writes about attempts that were over, which the database refused",
    ("write",),
)
IS_LEADER: Final = Family("laneway_is_leader", "gauge", "1 while a worker of this process leads")
EPOCH: Final = Family(
    "laneway_leader_epoch", "gauge", "Epoch in which it leads, 0 while it does not"
)
# Of every process.
POOL_SIZE: Final = Family(
    "laneway_pool_size", "gauge", "Database connections a pool may have", ("pool",)
)
POOL_IDLE: Final = Family(
    "laneway_pool_idle", "gauge", "Open connections that nobody uses", ("pool",)
)
POOL_IN_USE: Final = Family("laneway_pool_in_use", "gauge", "Connections in use", ("pool",))
POOL_WAITING: Final = Family(
    "laneway_pool_waiting", "gauge", "Who waits for a connection", ("pool",)
)
BUILD: Final = Family(
    "laneway_build_info", "gauge", "Always 1; the version is a label", ("version",)
)
# Of a server.
REQUESTS: Final = Family(
    "laneway_http_requests_total",
    "counter",
    "Requests answered, by the template of their route",
    ("method", "route", "status"),
)
REQUEST_TIMES: Final = Family(
    "laneway_http_request_duration_seconds",
    "histogram",
    "Time until the answer began",
    ("method", "route"),
)
STREAMS: Final = Family("laneway_open_streams", "gauge", "Event streams open at this server")
CALLS: Final = Family(
    "laneway_grpc_calls_total",
    "counter",
    "Calls of gRPC that ended, streams too, by their status",
    ("method", "status"),
)
CALL_TIMES: Final = Family(
    "laneway_grpc_call_duration_seconds",
    "histogram",
    "How long calls of gRPC took, without streams",
    ("method",),
)
CALL_STREAMS: Final = Family(
    "laneway_grpc_open_streams",
    "gauge",
    "Streams of gRPC open at this server; StreamJobs: remote workers connected",
    ("method",),
)
ASSIGNMENTS: Final = Family(
    "laneway_grpc_assignments_sent_total", "counter", "Assignments sent to remote workers"
)
# Of the cluster, from the database: the same on every replica.
DATABASE_UP: Final = Family("laneway_database_up", "gauge", "1 if the figures below could be read")
SCHEMA_CURRENT: Final = Family(
    "laneway_schema_current", "gauge", "1 if the schema is the one this version needs"
)
PAUSED: Final = Family("laneway_paused", "gauge", "1 while the pause gate is shut")
DEPTH: Final = Family(
    "laneway_queue_depth", "gauge", "Due jobs of a lane, counted up to 10,000", ("lane",)
)
DEPTH_CAPPED: Final = Family(
    "laneway_queue_depth_is_capped", "gauge", "1 if there are more than that", ("lane",)
)
OLDEST_WAIT: Final = Family(
    "laneway_oldest_wait_seconds",
    "gauge",
    "How long the job that waits longest has been due; 0 if none waits",
    ("lane",),
)
SLOTS_USED: Final = Family("laneway_slots_used", "gauge", "Jobs running in a lane", ("lane",))
SLOTS_MAX: Final = Family(
    "laneway_slots_max", "gauge", "Slots of a lane, +Inf if unbounded", ("lane",)
)
LANE_ENABLED: Final = Family(
    "laneway_lane_enabled", "gauge", "0 while a lane is drained", ("lane",)
)
WORKERS: Final = Family(
    "laneway_workers",
    "gauge",
    "Worker processes: live, silent (gone without a word) or stopped within the last hour",
    ("state",),
)
LEADER_PRESENT: Final = Family("laneway_leader_present", "gauge", "1 if some live worker leads")
LAPSED: Final = Family(
    "laneway_leases_lapsed", "gauge", "Leases that are over and nobody has taken back yet"
)
OLDEST_TRANSACTION: Final = Family(
    "laneway_oldest_transaction_seconds",
    "gauge",
    "Age of the oldest transaction of others that keeps dead rows from being removed",
)

OF_WORKERS: Final = (
    CLAIMS, RUNNING, OUTCOMES, DURATIONS, WAITS, LAPSES, FENCED, IS_LEADER, EPOCH,
)  # fmt: skip
OF_PROCESSES: Final = (POOL_SIZE, POOL_IDLE, POOL_IN_USE, POOL_WAITING, BUILD)
OF_SERVERS: Final = (
    REQUESTS, REQUEST_TIMES, STREAMS, CALLS, CALL_TIMES, CALL_STREAMS, ASSIGNMENTS,
)  # fmt: skip
OF_THE_CLUSTER: Final = (
    DATABASE_UP, SCHEMA_CURRENT, PAUSED, DEPTH, DEPTH_CAPPED, OLDEST_WAIT, SLOTS_USED, SLOTS_MAX,
    LANE_ENABLED, WORKERS, LEADER_PRESENT, LAPSED, OLDEST_TRANSACTION,
)  # fmt: skip
FAMILIES: Final = (*OF_WORKERS, *OF_PROCESSES, *OF_SERVERS, *OF_THE_CLUSTER)


def of_worker(tally: Counters) -> Iterator[Metric]:
    """What the workers of this process did."""
    yield CLAIMS.metric(_by_name(tally.claims.copy()))
    yield RUNNING.metric(_by_name(tally.running))
    yield OUTCOMES.metric(tally.outcomes)
    yield DURATIONS.metric(_by_name(tally.durations.copy()))
    yield WAITS.metric(_by_name(tally.waits.copy()))
    yield LAPSES.metric({(): tally.lapses})
    fenced = tally.fenced.copy()
    yield FENCED.metric({(one,): fenced[one] for one in ("settle", "report", "heartbeat")})
    epochs = tally.epochs.copy()
    yield IS_LEADER.metric({(): bool(epochs)})
    yield EPOCH.metric({(): max(epochs.values(), default=0)})


def of_process(tally: Counters) -> Iterator[Metric]:
    """What every process has: its pools, its version, its memory and CPU time."""
    pools = [pool for pool in list(tally.pools) if not pool.is_closed]
    for family, figure in (
        (POOL_SIZE, "size"),
        (POOL_IDLE, "idle"),
        (POOL_IN_USE, "in_use"),
        (POOL_WAITING, "waiting"),
    ):
        sums: dict[tuple[str, ...], float] = {}
        for pool in pools:
            sums[(pool.role,)] = sums.get((pool.role,), 0) + getattr(pool, figure)
        yield family.metric(sums)
    yield BUILD.metric({(__version__,): 1})
    yield from PROCESS_COLLECTOR.collect()


def of_server(tally: Counters, open_streams: int) -> Iterator[Metric]:
    """What a server answered, and whom it still tells."""
    yield REQUESTS.metric(tally.requests.copy())
    yield REQUEST_TIMES.metric(tally.request_times.copy())
    yield STREAMS.metric({(): open_streams})
    yield CALLS.metric(tally.calls.copy())
    yield CALL_TIMES.metric(_by_name(tally.call_times.copy()))
    yield CALL_STREAMS.metric(_by_name(tally.call_streams.copy()))
    yield ASSIGNMENTS.metric({(): tally.assignments_sent})


def _by_name(values: Mapping[str, Value]) -> Samples:
    return {(name,): value for name, value in values.items()}


class MetricsSnapshot:
    """Metrics to be told at once; a Collector as prometheus_client means it."""

    def __init__(self, made: Callable[[], Iterable[Metric]]) -> None:
        self.collect = made

    def restricted_registry(self, names: Iterable[str]) -> MetricsSnapshot:
        """Only these, as a reader asks by `name[]`."""
        wanted = frozenset(names)
        return MetricsSnapshot(
            lambda: [
                metric
                for metric in self.collect()
                if any(sample.name in wanted for sample in metric.samples)
            ]
        )

    def text(self, accept: str) -> tuple[bytes, str]:
        """The page and its content type, as the reader likes it best."""
        if "application/openmetrics-text" in accept:
            made: bytes = openmetrics.generate_latest(self)  # type: ignore[no-untyped-call]
            return made, openmetrics.CONTENT_TYPE_LATEST
        return generate_latest(self), CONTENT_TYPE_PLAIN_0_0_4


def page(parts: Sequence[Iterable[Metric]]) -> MetricsSnapshot:
    return MetricsSnapshot(lambda: [metric for part in parts for metric in part])
