"""The clock of the running test's database, which stands still until the test moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from laneway.errors import InvalidInput
from laneway.testing.bound_app import current

_NEXT: Final = """
select min(n.at) from (
    select d.run_at as at from laneway.delayed d
    union all
    select w.wake_at from laneway.waiting w
    union all
    select t.next_at from laneway.schedule_state t
      join laneway.schedules s using (name) where s.enabled
) n where n.at > pg_catalog.clock_timestamp()
"""


class Clock:
    """Decides what is due in the test's database: delays, retries, schedules, leases, retention.

    It stands still from the start of the test. Python's clock and PostgreSQL's `now()` go on.
    """

    def now(self) -> datetime:
        """The time of the database's clock."""
        at: datetime = current().database.execute("select pg_catalog.clock_timestamp()")[0][0]
        return at.astimezone(UTC)

    def advance(self, by: timedelta | None = None, /, **units: float) -> datetime:
        """Move forward: `advance(hours=1)`, or by a timedelta. Returns the new time."""
        moved = (by or timedelta()) + timedelta(**units)
        if moved < timedelta():
            raise InvalidInput("advance", f"must not be negative, got {moved}; see Clock.set")
        current().database.execute(
            "update laneway_testing.clock set stopped_at = stopped_at + %s, ahead = ahead + %s",
            moved,
            moved,
        )
        return self.now()

    def advance_to_next(self) -> timedelta:
        """Move to the time at which the next job or schedule is due; returns by how much.

        Such a job is delayed, or its handler sleeps or waits for an event with a timeout.

        Retries have jitter: this is the way to their next attempt.
        """
        rows = current().database.execute(_NEXT)
        if rows[0][0] is None:
            raise InvalidInput(
                "clock", "nothing is due later: no delayed or sleeping job, and no schedule"
            )
        passed: timedelta = rows[0][0] - self.now()
        self.set(rows[0][0])
        return passed

    def set(self, at: datetime) -> datetime:
        """Move to a time with a time zone, also back; stops the clock."""
        if at.tzinfo is None:
            raise InvalidInput("at", f"must have a time zone, got {at.isoformat()}")
        current().database.execute("update laneway_testing.clock set stopped_at = %s", at)
        return self.now()

    def stop(self) -> datetime:
        """Stand still from now on."""
        return self.set(self.now())

    def resume(self) -> None:
        """Go on in real time, from the time shown: for tests with real workers."""
        current().database.execute(
            "update laneway_testing.clock set stopped_at = null,"
            " ahead = stopped_at - pg_catalog.real_clock_timestamp() where stopped_at is not null"
        )


clock: Final = Clock()
