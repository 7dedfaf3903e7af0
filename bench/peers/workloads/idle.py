"""The cost of a worker without jobs: statements, processor time, memory.

Then each worker runs some jobs, and their transactions are counted: only the transactions of
workers that were idle before are all known to the server.
"""

from __future__ import annotations

import contextlib
import re
import time
from pathlib import Path

from bench.peers.places import Place
from bench.peers.postgres import PostgresPlace
from bench.peers.programs import ProgramFailed
from bench.peers.redis import Redis
from bench.peers.system import System
from bench.peers.workers import Workers
from bench.peers.workload import Lab, Values

NAME = "idle"
WITHIN_S = 20.0


class _Meter:
    """Counts what one system asks its broker for."""

    def __init__(self, lab: Lab, system: System, stack: contextlib.ExitStack, index: int) -> None:
        self._log = lab.postgres.server.log_path
        self._redis: Redis | None = None
        self.place: Place
        if system.broker == "redis":
            # A server for each, so that their commands are counted apart.
            self._redis = Redis()
            stack.callback(self._redis.close)
            self.place = stack.enter_context(self._redis.place(system))
            return
        name = f"idle_{index}"
        # One line per executed statement in either protocol, and none for those in functions.
        self._line = re.compile(rf"\] {name}\|[^|]*\| LOG:  (?:execute [^:]*|statement):")
        lab.postgres.create(name, lab.postgres.template(system))
        stack.callback(lab.postgres.drop, name)
        place = stack.enter_context(lab.postgres.kept_place(system, name))
        place.execute("set log_statement = 'none'")
        place.execute(f"alter database {name} set log_statement = 'all'")
        place.clean_up()
        self.place = place

    def count(self) -> int:
        if self._redis is not None:
            return int(self._redis.info("total_commands_processed"))
        return _matches(self._log, self._line)


def _matches(log: Path, line: re.Pattern[str]) -> int:
    with log.open(errors="replace") as lines:
        return sum(1 for each in lines if line.search(each))


def run_together(lab: Lab, systems: list[System]) -> tuple[dict[str, Values], dict[str, str]]:
    """Let one worker of each system idle for the same time; return values and failures."""
    values: dict[str, Values] = {}
    failed: dict[str, str] = {}
    meters: dict[str, _Meter] = {}
    workers: dict[str, Workers] = {}
    with contextlib.ExitStack() as stack:
        for number, system in enumerate(systems):
            meter = _Meter(lab, system, stack, number)
            try:
                workers[system.name] = stack.enter_context(Workers(system, meter.place))
            except ProgramFailed as error:
                failed[system.name] = str(error)
            else:
                meters[system.name] = meter
        time.sleep(lab.scale.idle_before_s)
        counts = {name: meter.count() for name, meter in meters.items()}
        cpu = {name: one.cpu_s() for name, one in workers.items()}
        began = time.monotonic()
        time.sleep(lab.scale.idle_s)
        seconds = time.monotonic() - began
        for name, meter in meters.items():
            resident, proportional = workers[name].memory_mb()
            values[name] = {
                "statements_per_s": (meter.count() - counts[name]) / seconds,
                "cpu_ms_per_s": 1000 * (workers[name].cpu_s() - cpu[name]) / seconds,
                "resident_mb": resident,
                "proportional_mb": proportional,
            }
        for name, meter in meters.items():
            if isinstance(meter.place, PostgresPlace):
                try:
                    per_job = _transactions_per_job(lab, meter.place, workers[name])
                except ProgramFailed as error:
                    failed[name] = str(error)
                else:
                    values[name]["transactions"] = per_job
    return values, failed


def _transactions_per_job(lab: Lab, place: PostgresPlace, workers: Workers) -> float:
    """The transactions of a worker while it drains; it is ended here."""
    count = lab.scale.bounded(lab.scale.drain, workers.system)
    workers.freeze()
    workers.submit_many(count)
    place.analyze()
    before = place.transactions()
    workers.mark()
    workers.resume()
    workers.await_count(count, WITHIN_S)
    workers.await_settled(WITHIN_S)
    done = workers.read().count
    workers.end()
    place.await_sessions_ended()
    return (place.transactions() - before) / max(1, done)
