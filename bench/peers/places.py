"""The place of a system's jobs during one run: a fresh database, or an emptied Redis."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Protocol

import psutil


@dataclass(frozen=True, slots=True)
class Counters:
    """The work of a place so far; Redis has no WAL."""

    cpu_s: float
    wal_bytes: int


class Place(Protocol):
    """One system's jobs."""

    @property
    def variables(self) -> dict[str, str]:
        """The variables that lead a program here."""

    def is_settled(self) -> bool:
        """Whether no job waits or runs."""

    def is_at_rest(self) -> bool:
        """Whether no client is in a transaction, so that all may be stopped."""

    def counters(self) -> Counters: ...

    def clean_up(self) -> None:
        """Do the work of autovacuum and the checkpointer now, instead of during a run."""

    def analyze(self) -> None:
        """Let the planner know the jobs that were just submitted."""

    def hold_snapshot(self) -> contextlib.AbstractContextManager[None]:
        """Keep a transaction with an old snapshot open."""


def cpu_s(process: psutil.Process) -> float:
    """The processor time of a process and of its children, ended ones included."""
    total = 0.0
    for one in [process, *process.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = one.cpu_times()
            total += times.user + times.system
            total += times.children_user + times.children_system
    return total
