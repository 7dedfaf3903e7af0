"""The figures of both runs, with their targets."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from bench.endurance.plan import Plan
from bench.endurance.samples import Reading, end_of_growth, growth, within
from bench.endurance.waits import Waits
from bench.figures import LATEST, Target, Targets

KEPT_IN = LATEST.with_name("endurance.json")
DAY_S = 86_400
TARGETS: Targets = {
    "minutes": None,
    "max_rate": None,
    "rate": None,
    "rate_last_vs_first": Target(0.9),
    "p50_ms": None,
    "p99_ms": None,
    "p99_last_vs_first": Target(1.1, is_ceiling=True),
    "table_growth": Target(1.1, is_ceiling=True),
    "index_growth": Target(1.1, is_ceiling=True),
    "rss_mb": None,
    "rss_growth_mb": None,
    "rss_last_vs_first": Target(1.1, is_ceiling=True),
    "held_p99_vs_before": Target(1.5, is_ceiling=True),
    "held_growth_ends_minutes": Target(5, is_ceiling=True),
    "worker_cores": None,
    "database_cores": None,
    "jobs_per_day_per_core": None,
    "gb_per_million_jobs_kept": None,
}


def steady(plan: Plan, waits: Waits, readings: Sequence[Reading]) -> dict[str, float]:
    """Figures of the run without an open transaction."""
    first, last = within(readings, plan.first), within(readings, plan.last)
    rss = [reading.rss_bytes / 1e6 for reading in first]
    rss_later = [reading.rss_bytes / 1e6 for reading in last]
    rate = waits.rate(plan.last)
    return {
        "minutes": plan.minutes,
        "rate": rate,
        "rate_last_vs_first": rate / waits.rate(plan.first),
        "p50_ms": waits.percentile_ms(plan.last, 50),
        "p99_ms": waits.percentile_ms(plan.last, 99),
        "p99_last_vs_first": waits.percentile_ms(plan.last, 99)
        / waits.percentile_ms(plan.first, 99),
        "table_growth": growth([r.table_bytes for r in first], [r.table_bytes for r in last]),
        "index_growth": growth([r.index_bytes for r in first], [r.index_bytes for r in last]),
        "rss_mb": mean(rss_later),
        "rss_growth_mb": mean(rss_later) - mean(rss),
        "rss_last_vs_first": growth(rss, rss_later),
        **sizing(readings, rate),
    }


def held(plan: Plan, waits: Waits, readings: Sequence[Reading]) -> dict[str, float]:
    """Figures of the run in which a transaction stays open for two thirds of the time."""
    return {
        "held_p99_vs_before": waits.percentile_ms(plan.end_of_hold, 99)
        / waits.percentile_ms(plan.before_hold, 99),
        "held_growth_ends_minutes": end_of_growth(readings, plan.hold.end) / 60,
    }


# Retention deletes nothing in the first minute of a job: until then all jobs are kept.
ALL_KEPT_S = 55.0


def sizing(readings: Sequence[Reading], rate: float) -> dict[str, float]:
    """CPU per job over the whole run, and bytes per job while all jobs are kept."""
    start, end = readings[0], readings[-1]
    seconds = end.at - start.at
    worker = (end.worker_cpu_s - start.worker_cpu_s) / seconds
    database = (end.database_cpu_s - start.database_cpu_s) / seconds
    full = [reading for reading in readings if reading.at - start.at <= ALL_KEPT_S][-1]
    kept = full.submitted - start.submitted
    return {
        "worker_cores": worker,
        "database_cores": database,
        "jobs_per_day_per_core": rate * DAY_S / (worker + database),
        # Bytes per job ÷ 1,000 is GB per million.
        "gb_per_million_jobs_kept": (full.bytes - start.bytes) / kept / 1000,
    }
