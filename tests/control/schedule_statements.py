"""The statements of schedules, run with the rights of a role."""

from __future__ import annotations

from datetime import UTC, datetime

from laneway.domain.payload import DEFAULT_LIMITS
from laneway.domain.schedule import Schedule
from laneway.store import leases, schedules
from laneway.store.schedules import SlotEntry
from tests.support.job_factory import JobFactory
from tests.support.store_client import PAST_CHECKS


def prepare_schedules(factory: JobFactory) -> None:
    factory.conn.execute(
        "insert into laneway.schedules (name, job_type, cron) values ('nightly', 't', '0 3 * * *')"
    )
    factory.conn.execute("update laneway.schedules set cron = '0 4 * * *' where name = 'nightly'")
    factory.conn.execute(
        "insert into laneway.schedules (name, job_type, cron) values ('broken', 't', '0 3 * * *')"
    )
    spoil = "update laneway.schedules set workspace = '' where name = 'broken'"
    factory.conn.execute(PAST_CHECKS.format(spoil).encode())


def run_scheduler(factory: JobFactory) -> None:
    holder, long_ago = factory.worker_id, datetime(2026, 1, 1, tzinfo=UTC)
    epoch = factory.run(leases.run_watchdog(holder, 10.0)).epoch
    for name, check in (("hourly", None), ("full", "is_full")):
        given = {"name": name, "job_type": "t", "cron": "0 * * * *", "check_name": check}
        assert factory.run(schedules.create(Schedule.of(given), "worker", DEFAULT_LIMITS))
    for due in factory.run(schedules.find_due(holder, ["is_full"])).due:
        factory.run(schedules.plan(due.name, due.seen, long_ago))
    found = {due.name: due for due in factory.run(schedules.find_due(holder, ["is_full"])).due}
    checked, plain = found["full"], found["hourly"]
    factory.run(schedules.find_ahead())
    assert factory.run(schedules.scopes())
    factory.run(schedules.settings(["nightly"]))
    factory.run(schedules.replan(plain, long_ago))
    entry = SlotEntry(long_ago, "submitted")
    assert factory.run(schedules.fire(plain, [entry], long_ago, holder, epoch)).taken == 1
    assert factory.run(schedules.begin_check(checked, holder, 60.0))
    factory.run(schedules.release_checks(holder))
    assert factory.run(schedules.stop("full", checked.seen, "no"))


def run_schedules(factory: JobFactory) -> None:
    assert factory.run(schedules.change("hourly", {"cron": "1 * * * *"}, "me", DEFAULT_LIMITS))
    factory.run(schedules.scopes())
    assert factory.run(schedules.run_now("hourly", "me", check=False))
    factory.run(schedules.run_now("broken", "me", check=False))
    assert factory.run(schedules.run_now("full", "me", check=True))
    assert factory.run(schedules.delete("hourly", "me"))
