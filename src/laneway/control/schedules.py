"""What people do with schedules."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from laneway.control import signals
from laneway.domain import cron, operator
from laneway.domain.arguments import validate_against_schema
from laneway.domain.schedule import (
    Schedule,
    Slot,
    check_schedule_name,
    encode_payload,
    validate_schedule_change,
)
from laneway.errors import InvalidInput, NotFound, Refused
from laneway.store import schedules as store
from laneway.store import workers
from laneway.store.database import Database
from laneway.store.schedules import Read, RunNow

log = logging.getLogger("laneway.control")

# Refuses a payload that is no arguments of the job type; None: this process has no handler of it.
KnownTypes = Callable[[str], Callable[[object], object] | None]


def _nothing_known(job_type: str) -> None:
    return None


async def listing(db: Database) -> list[Schedule]:
    """Every schedule, by name."""
    return [each.schedule for each in await db.run(store.read())]


async def get(db: Database, name: str) -> Schedule:
    return (await _read(db, name)).schedule


async def put(
    db: Database,
    name: str,
    change: Mapping[str, object],
    *,
    by: str,
    known: KnownTypes = _nothing_known,
) -> Schedule:
    """Creates the schedule, or changes of it what `change` names."""
    operator.check_words(by, None)
    limits = db.settings.payload_limits
    found = await db.run(store.read(check_schedule_name(name)))
    if found:
        checked = validate_schedule_change(change, limits=limits)
        if not checked:
            raise InvalidInput("schedule", "nothing to change was given")
        now = found[0].schedule
    else:
        checked = validate_schedule_change({"name": name, **change}, new=True, limits=limits)
        now = Schedule(**checked)  # type: ignore[arg-type]
    if checked.keys() & {"payload", "job_type"}:
        await _check_arguments(
            db,
            str(checked.get("job_type", now.job_type)),
            checked.get("payload", now.payload),
            known,
        )
    if not found and not await db.run(store.create(now, by, limits)):
        checked.pop("name")  # somebody was quicker: what was asked for is laid over it
        found = await db.run(store.read(name))
    if found and not await db.run(store.change(name, checked, by, limits)):
        raise NotFound(f"no schedule {name}")
    log.info("schedule %s: %s, by %s", name, ", ".join(sorted(checked)), by)
    return await _settle(db, name)


async def enable(db: Database, name: str, *, by: str) -> Schedule:
    """Runs it again from its next slot on; what stopped it is forgiven."""
    operator.check_words(by, None)
    return await put(db, (await get(db, name)).name, {"enabled": True}, by=by)


async def disable(db: Database, name: str, *, by: str) -> Schedule:
    """Takes no slot until it is enabled; the slots meanwhile are not missed."""
    operator.check_words(by, None)
    return await put(db, (await get(db, name)).name, {"enabled": False}, by=by)


async def delete(db: Database, name: str, *, by: str) -> None:
    """Deletes a schedule and its slots; the jobs it submitted stay."""
    operator.check_words(by, None)
    if not await db.run(store.delete(check_schedule_name(name), by)):
        raise NotFound(f"no schedule {name}")
    log.info("schedule %s: deleted by %s", name, by)


async def run_now(db: Database, name: str, *, by: str, check: bool = False) -> RunNow:
    """A slot of its own at once; with `check`, if a worker that knows the check finds it holds."""
    operator.check_words(by, None)
    ran = await db.run(store.run_now(check_schedule_name(name), by, check=check))
    if ran is None:
        raise NotFound(f"no schedule {name}")
    if ran.answer == "failed":
        raise Refused(f"the job of the schedule {name} cannot be submitted: {ran.note}")
    log.info("schedule %s: %s to run now by %s", name, ran.answer, by)
    if ran.answer == "asked":
        await signals.tell_schedulers(db)
    else:
        await signals.wake(db, [ran.job_type])
    return ran


async def slots(
    db: Database, name: str, *, limit: int = 50, before: datetime | None = None
) -> list[Slot]:
    """What came of its newest slots, newest first."""
    operator.check_page(limit)
    await _read(db, name)
    return await db.run(store.slots(name, limit, before))


async def _read(db: Database, name: str) -> Read:
    found = await db.run(store.read(check_schedule_name(name)))
    if not found:
        raise NotFound(f"no schedule {name}")
    return found[0]


async def _settle(db: Database, name: str) -> Schedule:
    """Plans a schedule that was changed, so that slots count from now on; tells workers when."""
    schedule, now = await _read(db, name)
    if schedule.enabled and schedule.next_at is None and schedule.updated_at is not None:
        next_at = cron.next_slot(cron.parse(schedule.cron, schedule.timezone), now)
        if next_at is not None:
            await db.run(store.plan(name, schedule.updated_at, next_at))
            schedule = replace(schedule, next_at=next_at)
            await signals.tell_schedulers(db)
    return schedule


async def _check_arguments(db: Database, job_type: str, payload: object, known: KnownTypes) -> None:
    """As a submit does: by the handler at hand, else by what workers have published."""
    text = encode_payload(payload, db.settings.payload_limits)
    check = known(job_type)
    if check is None:
        published = (await db.run(workers.published([job_type]))).get(job_type)
        if published is None or published.arguments is None:
            return
        schema = json.loads(published.arguments)
        validate_against_schema(schema, json.loads(text))
    else:
        check(json.loads(text))


class Schedules:
    """The verbs on schedules for an application: `lw.schedules`."""

    def __init__(self, database: Callable[[], Database], known: KnownTypes) -> None:
        self._database = database
        self._known = known

    async def put(self, name: str, *, by: str = "application", **settings: Any) -> Schedule:
        """Creates the schedule, or changes of it what is given: job_type, cron, timezone, payload,
        missed, catch_up, check_name, priority, max_retries, concurrency_key, workspace, tags,
        enabled."""
        return await put(self._database(), name, settings, by=by, known=self._known)

    async def get(self, name: str) -> Schedule:
        return await get(self._database(), name)

    async def listing(self) -> list[Schedule]:
        return await listing(self._database())

    async def enable(self, name: str, *, by: str = "application") -> Schedule:
        return await enable(self._database(), name, by=by)

    async def disable(self, name: str, *, by: str = "application") -> Schedule:
        return await disable(self._database(), name, by=by)

    async def delete(self, name: str, *, by: str = "application") -> None:
        await delete(self._database(), name, by=by)

    async def run_now(self, name: str, *, by: str = "application", check: bool = False) -> RunNow:
        return await run_now(self._database(), name, by=by, check=check)

    async def slots(
        self, name: str, *, limit: int = 50, before: datetime | None = None
    ) -> list[Slot]:
        return await slots(self._database(), name, limit=limit, before=before)
