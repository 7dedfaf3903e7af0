"""The samples of a run, their medians, and the file that keeps them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Self

from bench.peers.host import Weather

LATEST = Path(__file__).resolve().parents[1] / "latest" / "peers.json"
# With fewer quiet runs the noisy ones count too.
ENOUGH_QUIET = 3


@dataclass(slots=True)
class Sample:
    """One run of one workload on one system."""

    values: dict[str, float]
    weather: Weather


@dataclass(frozen=True, slots=True)
class Summary:
    """The median of a value with its spread."""

    median: float
    low: float
    high: float
    runs: int
    noisy: int


@dataclass(slots=True)
class Results:
    """Everything that a run found out."""

    host: dict[str, str] = field(default_factory=dict)
    postgres: dict[str, str] = field(default_factory=dict)
    redis: str = ""
    # Name, then versions, settings, language, broker and what it gives up.
    systems: dict[str, dict[str, Any]] = field(default_factory=dict)
    # System, then the reason.
    left_out: dict[str, str] = field(default_factory=dict)
    # Workload, then system, then the reason.
    cannot: dict[str, dict[str, str]] = field(default_factory=dict)
    failed: dict[str, dict[str, str]] = field(default_factory=dict)
    samples: dict[str, dict[str, list[Sample]]] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)
    minutes: float = 0.0
    is_quick: bool = False

    def add(self, workload: str, system: str, sample: Sample) -> None:
        self.samples.setdefault(workload, {}).setdefault(system, []).append(sample)

    def of(self, workload: str, system: str) -> list[Sample]:
        return self.samples.get(workload, {}).get(system, [])

    @property
    def usual_loop_ms(self) -> float:
        loops = [sample.weather.loop_ms for sample in self._all()]
        return median(loops) if loops else 0.0

    @property
    def commit_ms(self) -> float:
        commits = [sample.weather.commit_ms for sample in self._all()]
        return median(commits) if commits else 0.0

    def _all(self) -> list[Sample]:
        return [
            sample
            for by_system in self.samples.values()
            for samples in by_system.values()
            for sample in samples
        ]

    def quiet(self, workload: str, system: str) -> list[Sample]:
        usual = self.usual_loop_ms
        return [
            sample for sample in self.of(workload, system) if not sample.weather.is_noisy(usual)
        ]

    def summary(self, workload: str, system: str, value: str) -> Summary | None:
        """The median of the quiet runs, or of all where too few were quiet."""
        every = self.of(workload, system)
        quiet = self.quiet(workload, system)
        used = quiet if len(quiet) >= min(ENOUGH_QUIET, len(every)) else every
        numbers = [sample.values[value] for sample in used if value in sample.values]
        if not numbers:
            return None
        noisy = 0 if used is quiet else len(every) - len(quiet)
        return Summary(median(numbers), min(numbers), max(numbers), len(numbers), noisy)

    def median(self, workload: str, system: str, value: str) -> float | None:
        found = self.summary(workload, system, value)
        return None if found is None else found.median

    def save(self, path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> Self:
        kept = json.loads(path.read_text())
        for by_system in kept["samples"].values():
            for name, samples in by_system.items():
                by_system[name] = [
                    Sample(one["values"], Weather(**one["weather"])) for one in samples
                ]
        return cls(**kept)
