"""Take snapshots of lanes, limits and keys from a separate connection."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

import psycopg

from laneway.testing.history import HistoryEvent

EVERY_S = 0.02
_LOOK = """
select extract(epoch from clock_timestamp())::float8,
       (select coalesce(jsonb_object_agg(lane, n), '{}')
          from (select lane, count(*) as n from laneway.lease group by lane) x),
       (select jsonb_object_agg(name, max_slots) from laneway.worker_lanes),
       (select coalesce(jsonb_object_agg(name, n), '{}')
          from (select name, count(*) as n from laneway.lease, unnest(limits) as name
                 group by name) x),
       (select jsonb_object_agg(name, max_concurrent) from laneway.limits where scope = 'cluster'),
       (select coalesce(jsonb_object_agg(key, n), '{}')
          from (select concat(workspace, '/', concurrency_key) as key, count(*) as n
                  from laneway.lease where concurrency_key is not null
                 group by 1 having count(*) > 1) x)
"""


class Observer:
    """A thread that takes snapshots until it is stopped; it waits while the server is down."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self.events: list[HistoryEvent] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with psycopg.connect(
                    self._dsn, autocommit=True, application_name="crash observer"
                ) as conn:
                    while not self._stop.wait(EVERY_S):
                        self._look(conn)
            except psycopg.OperationalError:
                time.sleep(0.1)

    def _look(self, conn: psycopg.Connection[tuple[object, ...]]) -> None:
        row = conn.execute(_LOOK).fetchone()
        assert row is not None
        at, running, limits, held, ceilings, shared = row
        assert isinstance(at, float)
        more = {
            "running": running,
            "limits": limits,
            "held": held,
            "ceilings": ceilings,
            "shared": shared,
        }
        if running and not (self.events and self.events[-1].more == more):
            self.events.append(HistoryEvent("snapshot", at=at, more=more))
