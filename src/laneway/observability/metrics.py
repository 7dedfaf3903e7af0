"""Every metric: its name, labels and meaning; and the metrics of this process.

Counters count one process since its start. The server reads cluster-wide metrics from the
database; they are the same on each replica.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

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
        """The metric with these values, each keyed by the values of its labels."""
        if self.kind == "histogram":
            histogram = HistogramMetricFamily(self.name, self.help, labels=self.labels)
            for labels, value in samples.items():
                if isinstance(value, Histogram):
                    histogram.add_metric(labels, _buckets(value), value.total)
            return histogram
        kind = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        metric = kind(self.name, self.help, labels=self.labels)
        for labels, value in samples.items():
            if not isinstance(value, Histogram):
                metric.add_metric(labels, value)
        return metric


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    total, buckets = 0, []
    counts = list(histogram.counts)
    for bound, count in zip((*histogram.bounds, math.inf), counts, strict=True):
        total += count
        buckets.append(("+Inf" if bound == math.inf else repr(bound), float(total)))
    return buckets


# Metrics of workers: served by `laneway worker --metrics-port`, and by a server with a worker.
CLAIMS: Final = Family("laneway_claims_total", "counter", "Jobs claimed by this process", ("lane",))
RUNNING: Final = Family(
    "laneway_running", "gauge", "Attempts this process holds, until their end is stored", ("lane",)
)
OUTCOMES: Final = Family(
    "laneway_outcomes_total",
    "counter",
    "Attempts that ended here: completed, failed, cancelled, retried, snoozed, released, waited,"
    " analyzed, fenced or left",
    ("lane", "job_type", "outcome"),
)
DURATIONS: Final = Family(
    "laneway_job_duration_seconds", "histogram", "Run time of attempts", ("job_type",)
)
WAITS: Final = Family(
    "laneway_job_wait_seconds",
    "histogram",
    "Time jobs were due before their first claim; measured once metrics have been read",
    ("lane",),
)
LAPSES: Final = Family(
    "laneway_lapses_total",
    "counter",
    "Leases that this process, as leader, took back from workers that stopped renewing",
)
FENCED: Final = Family(
    "laneway_fenced_writes_total",
    "counter",
    "Writes of superseded or ended attempts that the database refused",
    ("write",),
)
IS_LEADER: Final = Family("laneway_is_leader", "gauge", "1 while a worker of this process leads")
EPOCH: Final = Family(
    "laneway_leader_epoch", "gauge", "Epoch in which this process leads, 0 while it does not"
)
# Metrics of every process.
POOL_SIZE: Final = Family(
    "laneway_pool_size", "gauge", "Database connections a pool may have", ("pool",)
)
POOL_IDLE: Final = Family(
    "laneway_pool_idle", "gauge", "Open connections that are not in use", ("pool",)
)
POOL_IN_USE: Final = Family("laneway_pool_in_use", "gauge", "Connections in use", ("pool",))
POOL_WAITING: Final = Family(
    "laneway_pool_waiting", "gauge", "Callers that wait for a connection", ("pool",)
)
BUILD: Final = Family(
    "laneway_build_info", "gauge", "Always 1; the version is a label", ("version",)
)
# Metrics of servers.
REQUESTS: Final = Family(
    "laneway_http_requests_total",
    "counter",
    "Requests answered, by the template of their route",
    ("method", "route", "status"),
)
REQUEST_TIMES: Final = Family(
    "laneway_http_request_duration_seconds",
    "histogram",
    "Time until the response began",
    ("method", "route"),
)
STREAMS: Final = Family("laneway_open_streams", "gauge", "Event streams open at this server")
CALLS: Final = Family(
    "laneway_grpc_calls_total",
    "counter",
    "gRPC calls that ended, streams included, by their status",
    ("method", "status"),
)
CALL_TIMES: Final = Family(
    "laneway_grpc_call_duration_seconds",
    "histogram",
    "Duration of gRPC calls, without streams",
    ("method",),
)
CALL_STREAMS: Final = Family(
    "laneway_grpc_open_streams",
    "gauge",
    "gRPC streams open at this server; StreamJobs: remote workers connected",
    ("method",),
)
ASSIGNMENTS: Final = Family(
    "laneway_grpc_assignments_sent_total", "counter", "Assignments sent to remote workers"
)
# Metrics of the cluster, from the database: the same on every replica.
DATABASE_UP: Final = Family("laneway_database_up", "gauge", "1 if the metrics below could be read")
SCHEMA_CURRENT: Final = Family(
    "laneway_schema_current", "gauge", "1 if the schema is the one this version needs"
)
PAUSED: Final = Family("laneway_paused", "gauge", "1 while the pause gate is closed")
DEPTH: Final = Family(
    "laneway_queue_depth", "gauge", "Due jobs of a lane, counted up to 10,000", ("lane",)
)
DEPTH_CAPPED: Final = Family(
    "laneway_queue_depth_is_capped", "gauge", "1 if there are more than that", ("lane",)
)
OLDEST_WAIT: Final = Family(
    "laneway_oldest_wait_seconds",
    "gauge",
    "Time since the longest waiting job became due; 0 if none waits",
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
    "Processes that run jobs: live; silent (lost within the last hour without a stop, and not"
    " replaced since); stopped within the last hour",
    ("state",),
)
WAITING: Final = Family(
    "laneway_jobs_waiting",
    "gauge",
    "Jobs that wait for other jobs, their sub_jobs, an event or the end of a sleep, counted up to"
    " 10,000",
    ("reason",),
)
OLDEST_WAITING: Final = Family(
    "laneway_jobs_waiting_oldest_seconds",
    "gauge",
    "Time since the first of these jobs began to wait; 0 if none waits",
    ("reason",),
)
OPEN_FLOWS: Final = Family(
    "laneway_flows_open",
    "gauge",
    "Flows with a job that has not ended, counted up to 10,000; a change is seen within seconds",
)
AWAITING_APPROVAL: Final = Family(
    "laneway_jobs_awaiting_approval",
    "gauge",
    "Jobs that wait for an approval, counted up to 10,000",
)
FAILED: Final = Family(
    "laneway_jobs_failed",
    "gauge",
    "Failed jobs that are kept, counted up to 10,000; a retry or a deletion removes one",
)
SCHEDULES_STOPPED: Final = Family(
    "laneway_schedules_stopped", "gauge", "Schedules that were disabled because of an error"
)
TOKENS_EXPIRING: Final = Family(
    "laneway_tokens_expiring",
    "gauge",
    "Tokens used within a week that expire within a week, or within the last quarter of a shorter"
    " life",
)
LEADER_PRESENT: Final = Family("laneway_leader_present", "gauge", "1 if there is a live leader")
LAPSED: Final = Family(
    "laneway_leases_lapsed", "gauge", "Lapsed leases that the leader has not taken back yet"
)
OLDEST_TRANSACTION: Final = Family(
    "laneway_oldest_transaction_seconds",
    "gauge",
    "Age of the oldest transaction of another program that keeps vacuum from removing rows",
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
    LANE_ENABLED, WORKERS, WAITING, OLDEST_WAITING, OPEN_FLOWS, AWAITING_APPROVAL, FAILED,
    SCHEDULES_STOPPED, TOKENS_EXPIRING, LEADER_PRESENT, LAPSED, OLDEST_TRANSACTION,
)  # fmt: skip
FAMILIES: Final = (*OF_WORKERS, *OF_PROCESSES, *OF_SERVERS, *OF_THE_CLUSTER)


def of_worker(counters: Counters) -> Iterator[Metric]:
    """Metrics of the workers in this process."""
    yield CLAIMS.metric(_by_name(counters.claims.copy()))
    yield RUNNING.metric(_by_name(counters.running))
    yield OUTCOMES.metric(counters.outcomes)
    yield DURATIONS.metric(_by_name(counters.durations.copy()))
    yield WAITS.metric(_by_name(counters.waits.copy()))
    yield LAPSES.metric({(): counters.lapses})
    fenced = counters.fenced.copy()
    yield FENCED.metric({(one,): fenced[one] for one in ("settle", "report", "heartbeat")})
    epochs = counters.epochs.copy()
    yield IS_LEADER.metric({(): bool(epochs)})
    yield EPOCH.metric({(): max(epochs.values(), default=0)})


def of_process(counters: Counters) -> Iterator[Metric]:
    """Metrics of every process: pools, version, memory and CPU time."""
    pools = [pool for pool in list(counters.pools) if not pool.is_closed]
    for family, attribute in (
        (POOL_SIZE, "size"),
        (POOL_IDLE, "idle"),
        (POOL_IN_USE, "in_use"),
        (POOL_WAITING, "waiting"),
    ):
        sums: dict[tuple[str, ...], float] = {}
        for pool in pools:
            sums[(pool.role,)] = sums.get((pool.role,), 0) + getattr(pool, attribute)
        yield family.metric(sums)
    yield BUILD.metric({(__version__,): 1})
    yield from PROCESS_COLLECTOR.collect()


def of_server(counters: Counters, open_streams: int) -> Iterator[Metric]:
    """Metrics of a server: its requests, calls and open streams."""
    yield REQUESTS.metric(counters.requests.copy())
    yield REQUEST_TIMES.metric(counters.request_times.copy())
    yield STREAMS.metric({(): open_streams})
    yield CALLS.metric(counters.calls.copy())
    yield CALL_TIMES.metric(_by_name(counters.call_times.copy()))
    yield CALL_STREAMS.metric(_by_name(counters.call_streams.copy()))
    yield ASSIGNMENTS.metric({(): counters.assignments_sent})


def _by_name(values: Mapping[str, Value]) -> Samples:
    return {(name,): value for name, value in values.items()}


class MetricsSnapshot:
    """Metrics for one response; implements the collector protocol of prometheus_client."""

    def __init__(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self.collect = collect

    def restricted_registry(self, names: Iterable[str]) -> MetricsSnapshot:
        """Only the metrics that a reader asked for with `name[]`."""
        wanted = frozenset(names)
        return MetricsSnapshot(
            lambda: [
                metric
                for metric in self.collect()
                if any(sample.name in wanted for sample in metric.samples)
            ]
        )

    def text(self, accept: str) -> tuple[bytes, str]:
        """The body and its content type, in the format that the reader prefers."""
        if "application/openmetrics-text" in accept:
            body: bytes = openmetrics.generate_latest(self)  # type: ignore[no-untyped-call]
            return body, openmetrics.CONTENT_TYPE_LATEST
        return generate_latest(self), CONTENT_TYPE_PLAIN_0_0_4


def page(parts: Sequence[Iterable[Metric]]) -> MetricsSnapshot:
    return MetricsSnapshot(lambda: [metric for part in parts for metric in part])
