"""Sizes of tables and indexes, memory and CPU of processes, read again and again."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

import psutil

from bench.endurance.plan import Window
from bench.server import Database

_SIZES = """
select sum(pg_table_size(c.oid))::bigint, sum(pg_indexes_size(c.oid))::bigint
  from pg_class c where c.relnamespace = 'laneway'::regnamespace and c.relkind = 'r'
"""
_SUBMITTED = "select last_value from laneway.jobs_seq_seq"


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading, `at` seconds from the start of a run."""

    at: float
    table_bytes: int
    index_bytes: int
    rss_bytes: int
    # CPU seconds since the first reading.
    worker_cpu_s: float
    database_cpu_s: float
    # Jobs submitted so far, of all times.
    submitted: int

    @property
    def bytes(self) -> int:
        return self.table_bytes + self.index_bytes


class CpuMeter:
    """CPU seconds of a process and its children, also of those that have ended."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._last: dict[tuple[int, float], float] = {}
        self.rss_bytes = 0
        self._first = 0.0
        self._first = self.read()

    def read(self) -> float:
        """CPU seconds since this meter was made; also reads the memory."""
        rss = 0
        for process in [self._root, *self._root.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                self._last[(process.pid, process.create_time())] = times.user + times.system
                rss += process.memory_info().rss
        self.rss_bytes = rss
        return sum(self._last.values()) - self._first


class Sampler:
    """Takes readings of one worker and of the database."""

    def __init__(self, database: Database, worker_pid: int) -> None:
        self._database = database
        backend = psutil.Process(int(database.value("select pg_backend_pid()")))
        postmaster = backend.parent()
        assert postmaster is not None
        self._worker, self._server = CpuMeter(worker_pid), CpuMeter(postmaster.pid)

    def read(self, at: float) -> Reading:
        row = self._database.conn.execute(_SIZES).fetchone()
        assert row is not None
        worker, server = self._worker.read(), self._server.read()
        return Reading(
            at=at,
            table_bytes=int(row[0]),
            index_bytes=int(row[1]),
            rss_bytes=self._worker.rss_bytes,
            worker_cpu_s=worker,
            database_cpu_s=server,
            submitted=int(self._database.value(_SUBMITTED)),
        )


def within(readings: Sequence[Reading], window: Window) -> list[Reading]:
    found = [reading for reading in readings if reading.at in window]
    assert found, f"no reading between {window.begin:.0f} s and {window.end:.0f} s"
    return found


def growth(values: Sequence[float], later: Sequence[float]) -> float:
    """The mean of the later values ÷ the mean of the first."""
    return mean(later) / mean(values)


# A smaller increase is the noise of a few pages.
_MORE = 1.01


def end_of_growth(readings: Sequence[Reading], after: float) -> float:
    """Seconds from `after` to the last reading that was larger than all before it."""
    largest = max(reading.bytes for reading in readings if reading.at <= after)
    grown_at = after
    for reading in readings:
        if reading.at > after and reading.bytes > largest * _MORE:
            largest, grown_at = reading.bytes, reading.at
    return grown_at - after
