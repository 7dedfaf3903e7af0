"""The page with the results and the sizing, written from the kept figures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from bench.endurance.results import KEPT_IN, TARGETS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "endurance.md"

HEAD = """# Endurance and sizing

<!-- Written by `make endurance` from bench/latest/endurance.json. Do not edit. -->

`make endurance` keeps a steady load for half an hour, with retention on, and again while another
program keeps a transaction open for 20 minutes. It answers two questions: does anything grow or get
slower, and what does a day need?

<!-- run: skip because it takes more than an hour and needs the machine for itself -->
```bash
make endurance                # MINUTES=30: over an hour in all
make endurance MINUTES=3      # a smoke check: all parts are shorter, and the targets do not apply
```

## Method

- First, one worker process and one submitting process find the maximum: jobs per second while some
  thousand jobs wait.
- Then `submit_many` submits 60 % of it, in a batch every 50 ms. Each job has a payload of about 80
  bytes and a handler that only notes the time since the submit. Worker, submitter and PostgreSQL
  share the machine.
- Completed jobs are kept for a minute, the shortest time. Retention walks over ended jobs every
  five minutes, as always.
- PostgreSQL has `fsync` and `synchronous_commit` on, autovacuum, and a checkpoint at least every
  five minutes.
- The first run compares its last five minutes with minutes 5 to 10. In the second run, a
  transaction that has read and written stays open from minute 5 to minute 25 of 35: dead rows
  cannot be removed meanwhile.
- The command exits with 0 when everything was measured, and prints the missed targets. A whole run
  is kept in `bench/latest/endurance.json`, and this page is written from it.

## The figures

| figure | target | meaning |
| --- | --- | --- |
"""
MEANINGS = {
    "minutes": "length of the first run",
    "max_rate": "jobs per second, submitted and run at the same time",
    "rate": "jobs per second in the last five minutes",
    "rate_last_vs_first": "jobs per second: last five minutes ÷ minutes 5 to 10",
    "p50_ms": "from submit to start, in the last five minutes",
    "p99_ms": "the same, p99",
    "p99_last_vs_first": "the p99 ÷ that of minutes 5 to 10",
    "table_growth": "size of all tables: last five minutes ÷ minutes 5 to 10",
    "index_growth": "the same for all indexes",
    "rss_mb": "memory of the worker with its child processes, in the last five minutes",
    "rss_growth_mb": "the same, less that of minutes 5 to 10",
    "rss_last_vs_first": "the same as a ratio",
    "held_p99_vs_before": "p99 in the last five minutes of the open transaction ÷ before it",
    "held_growth_ends_minutes": "from the end of the transaction until nothing grows any more",
    "worker_cores": "CPU of the worker over the first run",
    "database_cores": "CPU of PostgreSQL over the first run",
    "jobs_per_day_per_core": "jobs of a day at this rate ÷ the cores of worker and PostgreSQL",
    "gb_per_million_jobs_kept": "tables and indexes, while no job is deleted",
}
NONE_YET = """## A day's sizing

Not measured yet: a whole run of `make endurance` writes the figures here.
"""
SIZING = """## A day's sizing

- **{millions:,.0f} million no-op jobs per day and core.** PostgreSQL uses {database:.0%} of it, the
  worker the rest. Add the CPU of your handlers, and plan for the busiest minute.
- **{gb:.2g} GB per million jobs kept**, with indexes. Larger payloads and results come on top.
- A core that is busy all day, with the default retention of a week, fills {week_gb:,.0f} GB.
  Shorten the [retention](../howto/retention.md) of types with many small jobs.
"""


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def render(figures: Mapping[str, float] | None) -> str:
    """The page as Markdown; None: no whole run was kept."""
    rows = [f"| `{name}` | {TARGETS[name] or ''} | {text} |" for name, text in MEANINGS.items()]
    method = HEAD + "\n".join(rows) + "\n\n"
    if figures is None:
        return method + NONE_YET
    results = ["## Results", "", "| figure | value | target met |", "| --- | --- | --- |"]
    for name, value in figures.items():
        target = TARGETS[name]
        met = "" if target is None else "yes" if target.is_met(value) else "**no**"
        results.append(f"| `{name}` | {_shown(value)} | {met} |")
    return method + "\n".join([*results, "", _sizing(figures)])


def _sizing(figures: Mapping[str, float]) -> str:
    per_core = figures["jobs_per_day_per_core"]
    gb = figures["gb_per_million_jobs_kept"]
    cores = figures["worker_cores"] + figures["database_cores"]
    return SIZING.format(
        millions=per_core / 1e6,
        database=figures["database_cores"] / cores,
        gb=gb,
        week_gb=per_core * 7 / 1e6 * gb,
    )


def kept_figures() -> dict[str, float] | None:
    if not KEPT_IN.exists():
        return None
    found: dict[str, float] = json.loads(KEPT_IN.read_text())
    return found


def write() -> None:
    PAGE.write_text(render(kept_figures()))
