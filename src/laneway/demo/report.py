"""The report of a run: figures, checks and a table."""

from __future__ import annotations

import contextlib
import json
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from laneway import Job
from laneway.demo.scenarios import Kill
from laneway.domain.states import TERMINAL, Status

FIGURES_FILE = Path("bench/latest/demo.json")


@dataclass(frozen=True)
class DemoReport:
    """All jobs of a run with their attempts, read at its end."""

    jobs: Sequence[Job]
    kill: Kill | None
    seconds: float

    @property
    def figures(self) -> dict[str, float]:
        return {
            "completed": self._count(Status.COMPLETED),
            "retried": sum(_is_retried(job) for job in self.jobs),
            "resumed_after_kill": int(self._is_resumed()),
            "cancelled": self._count(Status.CANCELLED),
            "failed": self._count(Status.FAILED),
            "jobs": len(self.jobs),
            "seconds": round(self.seconds, 1),
        }

    @property
    def line(self) -> str:
        return " ".join(f"{name}={value:g}" for name, value in self.figures.items())

    def failed_checks(self) -> list[str]:
        """The expectations that this run did not meet."""
        found = []
        open_jobs = [job for job in self.jobs if job.status not in TERMINAL]
        if open_jobs:
            names = ", ".join(sorted({f"{job.job_type} {job.status.value}" for job in open_jobs}))
            found.append(f"{len(open_jobs)} jobs have not ended: {names}")
        for job in self.jobs:
            if job.status is Status.FAILED:
                why = f"{job.error.type}: {job.error.message}" if job.error else "without an error"
                found.append(f"{job.job_type} {job.id} failed: {why}")
        if not self.figures["retried"]:
            found.append("no job failed and was retried")
        if not self._is_resumed():
            found.append("no job resumed from its checkpoint after kill -9 of its worker")
        return found

    def table(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("JOB TYPE")
        table.add_column("LANE")
        for name in ("JOBS", "COMPLETED", "CANCELLED", "FAILED", "ATTEMPTS"):
            table.add_column(name, justify="right")
        by_type: dict[tuple[str, str], list[Job]] = defaultdict(list)
        for job in self.jobs:
            by_type[job.lane, job.job_type].append(job)
        for (lane, job_type), group in sorted(by_type.items()):
            counts = [
                sum(job.status is status for job in group)
                for status in (Status.COMPLETED, Status.CANCELLED, Status.FAILED)
            ]
            attempts = sum(job.attempt for job in group)
            table.add_row(job_type, lane, *map(str, (len(group), *counts, attempts)))
        return table

    def save(self) -> None:
        """Save the figures in a checkout, beside those of the benchmarks."""
        if not FIGURES_FILE.parent.parent.is_dir():
            return
        with contextlib.suppress(OSError):  # A read-only checkout.
            FIGURES_FILE.parent.mkdir(exist_ok=True)
            staging = FIGURES_FILE.with_suffix(f".{os.getpid()}.new")
            staging.write_text(json.dumps(self.figures, indent=2) + "\n", "utf-8")
            staging.replace(FIGURES_FILE)

    def _count(self, status: Status) -> int:
        return sum(job.status is status for job in self.jobs)

    def _is_resumed(self) -> bool:
        """Whether the killed job completed on another worker, resuming after its checkpoint."""
        kill = self.kill
        job = next((job for job in self.jobs if kill and job.id == kill.job.id), None)
        if kill is None or job is None or not isinstance(job.result, dict):
            return False
        workers = {each.attempt: each.claimed_by for each in job.attempts}
        return (
            job.status is Status.COMPLETED
            and job.attempt > kill.attempt
            and workers[job.attempt] != workers[kill.attempt]
            and job.result["first"] > kill.done
            and job.result["first"] - 1 + job.result["count"] == job.result["tables"]
        )


def _is_retried(job: Job) -> bool:
    """Whether the job completed after an attempt whose handler raised."""
    return job.status is Status.COMPLETED and any(each.outcome == "failed" for each in job.attempts)
