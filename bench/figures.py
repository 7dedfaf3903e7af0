"""The figures with their targets, the table at the end of a run, and the file with the results."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from bench.scale import log

Rates = dict[str, list[float]]
LATEST = Path(__file__).resolve().parent / "latest" / "bench.json"


@dataclass(frozen=True, slots=True)
class Target:
    """The least, or with `is_ceiling` the greatest, value that a figure may have."""

    bound: float
    is_ceiling: bool = False

    def is_met(self, value: float) -> bool:
        return value <= self.bound if self.is_ceiling else value >= self.bound

    def __str__(self) -> str:
        return f"{'≤' if self.is_ceiling else '≥'} {self.bound:g}"


# In the order of the table. None: shown without a target.
Targets = dict[str, Target | None]
TARGETS: Targets = {
    "drain_1p_vs_raw": Target(0.5),
    "raw_vs_copy": Target(0.22),
    "drain_default_vs_tuned": Target(0.7),
    "drain_2p_vs_1p": Target(1.0),
    "drain_8p_vs_2p": Target(0.95),
    "bounded_vs_unbounded": Target(0.8),
    "drain_1p": None,
    "drain_2p": None,
    "raw": None,
    "submit_many_vs_copy": Target(0.5),
    "start_p50_ms": Target(5, is_ceiling=True),
    "start_p99_ms": Target(25, is_ceiling=True),
    "backlog_1m_vs_10k": Target(0.9),
    "held_snapshot_last_vs_first": Target(0.85),
    "held_snapshot_p50_ms_start": None,
    "held_snapshot_p99_ms_start": None,
    "held_snapshot_p50_ms_end": None,
    "held_snapshot_p99_ms_end": None,
    "p99_end_vs_start": Target(1.5, is_ceiling=True),
    "limits_vs_plain": Target(0.7),
    "keys_vs_plain": Target(0.65),
    "blocked_backlog_vs_plain": Target(0.8),
    "idle_statements_per_s": Target(2, is_ceiling=True),
    "rss_10k_async_mb": Target(300, is_ceiling=True),
    "debian_vs_embedded_start_p50": Target(1.5, is_ceiling=True),
    "debian_vs_embedded_drain": Target(0.6),
    "post_vs_bare_insert": Target(0.8),
    "status_ms_at_1m": Target(50, is_ceiling=True),
    "slowest_read_ms": Target(100, is_ceiling=True),
    "reads": None,
    "cross_replica_event_p50_ms": Target(100, is_ceiling=True),
    "sse_1000_rss_mb": Target(300, is_ceiling=True),
    "sse_1000_start_p50_vs_none": Target(1.2, is_ceiling=True),
    "http_p99_with_cpu_process_vs_idle": Target(2, is_ceiling=True),
    "http_p99_with_cpu_thread_vs_idle": None,
    "fuzz_cases": Target(1000),
    "fuzz_5xx": Target(0, is_ceiling=True),
    "authz_cells": None,
    "authz_leaks": Target(0, is_ceiling=True),
}


def alternate(
    section: str, kinds: Mapping[str, Callable[[], float]], runs: int, *, reverses: bool = False
) -> Rates:
    """Measure rates in turn, so that a disturbance hits all; `reverses`: every second turn."""
    rates: Rates = {kind: [] for kind in kinds}
    for turn in range(runs):
        for kind in reversed(rates) if reverses and turn % 2 else rates:
            rates[kind].append(kinds[kind]())
        shown = ", ".join(f"{kind} {each[-1]:,.0f}/s" for kind, each in rates.items())
        log(f"{section} {turn + 1}: {shown}")
    return rates


@dataclass(slots=True)
class Figures:
    """The results so far; saved after each section unless this is a smoke check."""

    kept_in: Path | None
    targets: Targets = field(default_factory=lambda: TARGETS)
    values: dict[str, float] = field(default_factory=dict)

    def put(self, **measured: float) -> None:
        for name, value in measured.items():
            assert name in self.targets, name
            self.values[name] = round(value, 0 if value >= 1000 else 3)
        if self.kept_in is not None:
            self.kept_in.parent.mkdir(exist_ok=True)
            self.kept_in.write_text(json.dumps(self.values, indent=2) + "\n")

    def ratio(self, name: str, of: list[float], to: list[float]) -> None:
        """Record the ratio of the medians of alternating runs."""
        self.put(**{name: median(of) / median(to)})

    @property
    def missed(self) -> list[str]:
        return [
            name
            for name, target in self.targets.items()
            if target is not None and name in self.values and not target.is_met(self.values[name])
        ]

    def show(self, console: Console) -> None:
        table = Table("figure", "value", "target", "ok")
        for column in (table.columns[1], table.columns[2]):
            column.justify = "right"
        for name, target in self.targets.items():
            if name not in self.values:
                continue
            value = self.values[name]
            ok = "" if target is None else "yes" if target.is_met(value) else "[red]NO[/red]"
            shown = f"{value:,.0f}" if value >= 1000 else f"{value:g}"
            table.add_row(name, shown, str(target or ""), ok)
        console.print(table)
