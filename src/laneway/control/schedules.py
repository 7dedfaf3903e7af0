"""Verbs on schedules."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final

from laneway.control import notifications
from laneway.control.audit import AuditedChange, audited
from laneway.domain import cron, verb_rules
from laneway.domain.arguments import validate_against_schema
from laneway.domain.missing import missing
from laneway.domain.payload import JsonText, PayloadLimits
from laneway.domain.schedule import (
    RunNow,
    Schedule,
    Slot,
    check_schedule_name,
    encode_payload,
    validate_schedule_change,
)
from laneway.domain.stored_json import StoredJson
from laneway.domain.webhook import check_submitted_type
from laneway.errors import InvalidInput, Refused
from laneway.observability.safe_logger import SafeLogger
from laneway.store import quotas, workers
from laneway.store import schedules as store
from laneway.store.database import Database, Runner
from laneway.store.quotas import Quota
from laneway.store.schedules import ReadSchedule, ScheduleScope

log = SafeLogger("laneway.control")

# Checks a payload by the handler of a job type; None: this process does not have the handler.
KnownTypes = Callable[[str], Callable[[object], object] | None]


# Larger payloads are parsed and checked in a thread.
_LARGE: Final = 8 * 1024


def _no_handlers(job_type: str) -> None:
    return None


async def listing(db: Database) -> list[Schedule]:
    """Every schedule, by name."""
    return [each.schedule for each in await db.run(store.read())]


async def scopes(db: Database) -> list[ScheduleScope]:
    """Every schedule by name, with the fields that decide which callers see it."""
    return await db.run(store.scopes())


async def read(db: Database, names: Sequence[str], *, as_text: bool = False) -> list[Schedule]:
    """The existing schedules of these names; `as_text`: large payloads as `StoredJson`."""
    if not names:
        return []
    return [each.schedule for each in await db.run(store.read(*names, as_text=as_text))]


async def get(db: Database, name: str, *, as_text: bool = False) -> Schedule:
    return (await _read(db, name, as_text=as_text)).schedule


async def put(
    db: Database,
    name: str,
    change: Mapping[str, object],
    *,
    by: str,
    known: KnownTypes = _no_handlers,
    is_new: bool | None = None,
    as_text: bool = False,
) -> Schedule:
    """Create the schedule, or change the settings that `change` names.

    `is_new`: only create it, or only change it. With `as_text`, a large payload in the result is
    `StoredJson`.
    """
    verb_rules.check_actor(by)
    check_schedule_name(name)
    async with audited(db, by, "schedule.changed", "schedule", name) as audited_change:
        checked = await _put(
            audited_change, name, change, by, known, db.settings.payload_limits, is_new
        )
        schedule, is_planned = await _plan_next(audited_change, name, as_text=as_text)
        await audited_change.compare("schedule", name, _as_state(checked))
        audited_change.workspace = schedule.workspace
    log.info("schedule %s: %s, by %s", name, ", ".join(sorted(checked)), by)
    if is_planned:
        await notifications.wake_schedulers(db)
    return schedule


async def _put(
    audited_change: AuditedChange,
    name: str,
    change: Mapping[str, object],
    by: str,
    known: KnownTypes,
    limits: PayloadLimits,
    is_new: bool | None,
) -> dict[str, object]:
    taken = Refused(f"the schedule {name} already exists")
    found = await audited_change.run(store.read(name, as_text=True))
    if found and is_new:
        raise taken
    if not found and is_new is False:
        raise missing("schedule", name)
    if found:
        checked = validate_schedule_change(change, limits=limits)
        if not checked:
            raise InvalidInput("schedule", "give at least one setting to change")
        now = found[0].schedule
    else:
        checked = validate_schedule_change({"name": name, **change}, new=True, limits=limits)
        now = Schedule(**checked)  # type: ignore[arg-type]
    if checked.keys() & {"payload", "job_type"}:
        job_type = str(checked.get("job_type", now.job_type))
        check_submitted_type(job_type)
        payload = encode_payload(checked.get("payload", now.payload), limits)
        await _check_arguments(audited_change, job_type, payload, known)
    if not found:
        if await audited_change.run(store.create(now, by, limits)):
            audited_change.action = "schedule.created"
            return checked
        if is_new:
            raise taken
        checked.pop("name")  # another caller was quicker: change its schedule
    if not await audited_change.run(store.change(name, checked, by, limits)):
        raise missing("schedule", name)
    if checked.keys() == {"enabled"}:
        audited_change.action = "schedule.enabled" if checked["enabled"] else "schedule.disabled"
    return checked


async def enable(db: Database, name: str, *, by: str) -> Schedule:
    """Enable a schedule from its next slot on, and clear its error."""
    return await put(db, name, {"enabled": True}, by=by, is_new=False)


async def disable(db: Database, name: str, *, by: str) -> Schedule:
    """Disable a schedule; slots until it is enabled again do not count as missed."""
    return await put(db, name, {"enabled": False}, by=by, is_new=False)


async def delete(db: Database, name: str, *, by: str) -> None:
    """Delete a schedule and its slots; its jobs stay."""
    verb_rules.check_actor(by)
    check_schedule_name(name)
    async with audited(db, by, "schedule.deleted", "schedule", name) as audited_change:
        audited_change.workspace = (await _read(audited_change, name)).schedule.workspace
        if not await audited_change.run(store.delete(name, by)):
            raise missing("schedule", name)
        await audited_change.compare("schedule", name, {"name": name})
    log.info("schedule %s: deleted by %s", name, by)


async def run_now(
    db: Database, name: str, *, by: str, check: bool = False, quota: Quota | None = None
) -> RunNow:
    """Run the schedule once, now; with `check`, only if a worker's check passes.

    Its job is counted against the quota.
    """
    verb_rules.check_actor(by)
    check_schedule_name(name)
    async with audited(db, by, "schedule.ran", "schedule", name) as audited_change:
        if quota is not None:
            found = (await _read(audited_change, name)).schedule
            asked = quotas.RequestedJob(found.workspace, found.job_type, None)
            await audited_change.run(quotas.check(quota, [asked]))
        ran = await audited_change.run(store.run_now(name, by, check=check))
        if ran is None:
            raise missing("schedule", name)
        if str(ran.answer) == "failed":
            raise Refused(f"the job of the schedule {name} could not be submitted: {ran.note}")
        if quota is not None and ran.job_id is not None:
            await audited_change.run(quotas.charge(quota, [ran.job_id]))
        audited_change.workspace = (await _read(audited_change, name)).schedule.workspace
        audited_change.after = {
            "answer": ran.answer,
            "slot": ran.slot.isoformat(),
            "job_id": ran.job_id,
        }
    log.info("schedule %s: run requested by %s: %s", name, by, ran.answer)
    if ran.answer == "asked":
        await notifications.wake_schedulers(db)
    else:
        await notifications.wake(db, [ran.job_type])
    return ran


async def slots(
    db: Database, name: str, *, limit: int = 50, before: datetime | None = None
) -> list[Slot]:
    """Its slots with their outcomes, newest first."""
    verb_rules.check_page(limit)
    await _read(db, name)
    return await db.run(store.slots(name, limit, before))


async def _read(db: Runner, name: str, *, as_text: bool = True) -> ReadSchedule:
    found = await db.run(store.read(check_schedule_name(name), as_text=as_text))
    if not found:
        raise missing("schedule", name)
    return found[0]


async def _plan_next(
    audited_change: AuditedChange, name: str, *, as_text: bool
) -> tuple[Schedule, bool]:
    """Plan the next slot of a changed schedule; return the schedule, and whether it was planned."""
    schedule, now = await _read(audited_change, name, as_text=as_text)
    if schedule.enabled and schedule.next_at is None and schedule.updated_at is not None:
        next_at = cron.next_slot(cron.parse(schedule.cron, schedule.timezone), now)
        if next_at is not None:
            await audited_change.run(store.plan(name, schedule.updated_at, next_at))
            return replace(schedule, next_at=next_at), True
    return schedule, False


async def _check_arguments(db: Runner, job_type: str, payload: str, known: KnownTypes) -> None:
    """Check as a submit does: by the handler if known, else by the published schema."""
    check = known(job_type)
    if check is None:
        published = (await db.run(workers.published([job_type]))).get(job_type)
        if published is None or published.arguments in (None, "null"):
            return
        check = partial(validate_against_schema, published.arguments)
    if len(payload) > _LARGE:
        await asyncio.to_thread(_check_parsed, check, payload)
    else:
        _check_parsed(check, payload)


def _check_parsed(check: Callable[[object], object], payload: str) -> None:
    check(json.loads(payload))


def _as_state(checked: Mapping[str, object]) -> Mapping[str, object] | StoredJson:
    """The checked settings, as the history would show them."""
    payload = checked.get("payload")
    if not isinstance(payload, JsonText):
        return checked
    others = {name: value for name, value in checked.items() if name != "payload"}
    text = json.dumps({**others, "payload": None})
    return StoredJson(f"{text.removesuffix('null}')}{payload}}}".encode())
