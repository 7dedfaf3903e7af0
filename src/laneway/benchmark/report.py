"""The figures of a benchmark, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from laneway.benchmark.bottleneck import Load

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, slots=True)
class Rates:
    """Measured times in milliseconds and rates per second."""

    round_trip_ms: float
    # None: the role may not measure it.
    commit_ms: float | None
    raw_insert_per_s: float
    raw_take_per_s: float
    submit_many_per_s: float
    submit_per_s: float
    drain_per_s: float
    start_p50_ms: float
    start_p99_ms: float


@dataclass(frozen=True, slots=True)
class BenchmarkReport:
    """The result of a run."""

    rates: Rates
    load: Load
    limit: str
    notes: list[str]

    def to_dict(self) -> dict[str, object]:
        rates, load = self.rates, self.load
        measured = {name: _rounded(value) for name, value in asdict(rates).items()}
        return {
            **measured,
            "submit_many_vs_raw": _rounded(_ratio(rates.submit_many_per_s, rates.raw_insert_per_s)),
            "submit_vs_commits": _rounded(self._submit_vs_commits),
            "drain_vs_raw": _rounded(_ratio(rates.drain_per_s, rates.raw_take_per_s)),
            "worker_cores": _rounded(load.worker_cores),
            "database_cores": _rounded(load.database_cores),
            "machine_busy": _rounded(load.machine),
            "session": {work: _rounded(share) for work, share in load.connection.items()},
            "limit": self.limit,
            "notes": self.notes,
        }

    @property
    def _submit_vs_commits(self) -> float | None:
        commit_ms = self.rates.commit_ms
        return self.rates.submit_per_s * commit_ms / 1000 if commit_ms else None

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Name, value, and the ratio to the raw limit."""
        rates, load = self.rates, self.load
        yield "round trip", f"{rates.round_trip_ms:.2f} ms", ""
        if rates.commit_ms is not None:
            yield "commit", f"{rates.commit_ms:.2f} ms", ""
        yield "raw: insert, batches of 1,000", _per_s(rates.raw_insert_per_s), "1"
        many = _ratio(rates.submit_many_per_s, rates.raw_insert_per_s)
        yield "submit_many, 1,000 jobs each", _per_s(rates.submit_many_per_s), _shown(many)
        beside = self._submit_vs_commits
        of_commits = f"{beside:.2f} of the commits" if beside is not None else ""
        yield "submit, one by one", _per_s(rates.submit_per_s), of_commits
        yield "raw: take and record, batches of 1,000", _per_s(rates.raw_take_per_s), "1"
        drain = _ratio(rates.drain_per_s, rates.raw_take_per_s)
        yield "drain, one worker process", _per_s(rates.drain_per_s), _shown(drain)
        yield "from submit to start, p50", f"{rates.start_p50_ms:.1f} ms", ""
        yield "from submit to start, p99", f"{rates.start_p99_ms:.1f} ms", ""
        yield "CPU of the worker during the drain", f"{load.worker_cores:.2f} cores", ""
        yield "CPU of the database for it", f"{load.database_cores:.2f} cores", ""

    def table(self) -> Table:
        from rich.table import Table

        table = Table("figure", "value", "of the raw limit", box=None, pad_edge=False)
        table.columns[1].justify = table.columns[2].justify = "right"
        for row in self.rows():
            table.add_row(*row)
        return table


def _ratio(value: float, to: float) -> float:
    return value / to if to else 0.0


def _per_s(value: float) -> str:
    return f"{value:,.0f}/s"


def _shown(ratio: float) -> str:
    return f"{ratio:.2f}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
