"""Verbs on lanes, and the pause gate for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from laneway.control import notifications
from laneway.control.audit import audited
from laneway.domain.change import Change
from laneway.domain.lane import (
    DEFAULT_LANE,
    Lane,
    TunedLane,
    check_job_type,
    check_lane_name,
    validate_lane_change,
)
from laneway.domain.lane_setup import (
    LaneSetup,
    SetupChange,
    check_setup,
    plan_setup,
    removed_lanes,
    state_of,
)
from laneway.domain.missing import missing
from laneway.domain.overview import DEPTH_BOUND, Gate, LaneDetail, LaneStatus, TypeLoad
from laneway.domain.text import log_words
from laneway.domain.verb_rules import check_actor
from laneway.errors import InvalidInput, Refused
from laneway.observability.safe_logger import SafeLogger
from laneway.store import freeze
from laneway.store import lanes as store
from laneway.store.database import Database, Runner
from laneway.store.lanes import LaneLoad

log = SafeLogger("laneway.control")

# The name of the pause gate in the history.
GATE: Final = "pause"


async def inspect(db: Database) -> list[LaneStatus]:
    """Every lane with its utilization, by name."""
    state = await db.run(store.read())
    loads = await db.run(store.measure(DEPTH_BOUND))
    frozen_by = {each.lane: each.frozen_by for each in await db.run(freeze.frozen())}
    return [
        # A frozen lane that was resumed by hand is listed until the thaw, but not frozen.
        _status(
            lane,
            [load for load in loads if load.lane == lane.name],
            None if lane.enabled else frozen_by.get(lane.name),
        )
        for lane in state.lanes.values()
    ]


async def get(db: Database, name: str) -> LaneDetail:
    """One lane with its utilization, and its waiting jobs by priority."""
    check_lane_name(name)
    found = next((each for each in await inspect(db) if each.lane.name == name), None)
    if found is None:
        raise missing("lane", name)
    waiting = await db.run(store.measure_lane(name, DEPTH_BOUND))
    return LaneDetail(
        found.lane, found.slots_used, found.waiting, found.frozen_by, by_priority=tuple(waiting)
    )


async def find(db: Database, job_type: str) -> Lane:
    """The lane of a job type."""
    check_job_type(job_type)
    state = await db.run(store.read())
    return state.lanes[state.lane_of(job_type)]


def _status(lane: Lane, loads: list[LaneLoad], frozen_by: str | None) -> LaneStatus:
    waiting = tuple(
        TypeLoad(
            load.job_type,
            load.depth or 0,
            bool(load.is_capped),
            round(float(load.oldest_s), 3) if load.oldest_s is not None else None,
        )
        for load in loads
        if load.job_type is not None
    )
    return LaneStatus(lane, loads[0].running if loads else 0, waiting, frozen_by)


async def create(db: Database, settings: Mapping[str, object], *, by: str) -> Lane:
    """Create a lane; settings that are not given take their defaults."""
    check_actor(by)
    lane = Lane.of(settings)
    async with audited(db, by, "lane.created", "lane", lane.name) as change:
        if not await change.run(store.create(lane, by)):
            raise Refused(
                f"the lane {lane.name} already exists: change it with `laneway lanes set`"
            )
        await change.compare("lane", lane.name, settings)
    log.info("lane %s: created by %s", lane.name, by)
    await _wake(db, lane)
    return await _read(db, lane.name)


async def tune(
    db: Database, name: str, change: Mapping[str, object], *, by: str, as_text: bool = False
) -> TunedLane:
    """Change the given settings, in force at every worker's next claim.

    With `as_text`, large states of the returned change are `StoredJson`.
    """
    check_actor(by)
    checked = validate_lane_change(change)
    if not checked:
        raise InvalidInput("lane", "give at least one setting to change")
    check_lane_name(name)
    async with audited(db, by, _action(checked), "lane", name) as audited_change:
        lane = await audited_change.run(store.tune(name, checked, by))
        if lane is None:
            raise missing("lane", name)
        made = await audited_change.compare("lane", name, checked, as_text=as_text)
    log.info("lane %s: %s, by %s", name, log_words(checked), by)
    await _wake(db, lane)
    return TunedLane.after(made, lane)


def _action(change: Mapping[str, object]) -> str:
    """The action that the audit records for a change."""
    if change.keys() == {"enabled"}:
        return "lane.resumed" if change["enabled"] else "lane.drained"
    return "lane.tuned"


async def drain(db: Database, name: str, *, by: str) -> TunedLane:
    """Claim nothing new in the lane; running jobs finish."""
    return await tune(db, name, {"enabled": False}, by=by)


async def resume(db: Database, name: str, *, by: str) -> TunedLane:
    """Claim jobs of the lane again."""
    return await tune(db, name, {"enabled": True}, by=by)


async def move_type(db: Database, job_type: str, name: str, *, by: str) -> Lane:
    """Move a job type with its waiting jobs to another lane."""
    check_actor(by)
    check_job_type(job_type)
    check_lane_name(name)
    async with audited(db, by, "lane.type_moved", "lane", name) as change:
        # Check first: the move removes the type from its old lane even if the new one is missing.
        await _read(change, name)
        await change.run(store.move_type(name, job_type, by))
        old = _lane_before(await change.changes("lane"), job_type, name)
        change.before = {"job_type": job_type, "lane": old}
        change.after = {"job_type": job_type, "lane": name}
    log.info("job type %s: moved to the lane %s by %s", job_type, name, by)
    await notifications.wake(db, [job_type])
    return await _read(db, name)


def _lane_before(moved: Sequence[Change], job_type: str, name: str) -> str:
    """The lane of a type before the changes that moved it to the lane `name`."""
    if not moved:
        return name
    listed = (each.name for each in moved if job_type in _types(each.before))
    return next(listed, DEFAULT_LANE)


def _types(state: Mapping[str, object] | None) -> Sequence[str]:
    return cast("Sequence[str]", (state or {}).get("job_types", ()))


async def load(db: Database, lanes: Sequence[Lane], *, by: str, dry_run: bool = False) -> LaneSetup:
    """Make these the lanes, in one change; settings that are not given take a new lane's defaults.

    Only `enabled` and `job_types` stay as they are unless given.

    A lane that is not among them is deleted, or drained while jobs run or wait in it. `default` and
    `analysis` stay as they are unless given. `dry_run` only returns the changes.
    """
    check_actor(by)
    wanted = check_setup(lanes)
    if dry_run:
        return LaneSetup(True, await _plan(db, wanted, await _waiting(db, wanted)))
    async with audited(db, by, "lanes.loaded", "lane") as change:
        # Waiting jobs are searched for before claims have to wait for the lock.
        waiting = await _waiting(change, wanted)
        await change.run(store.lock())
        change.before = await _setup(change)
        made = await _plan(change, wanted, waiting)
        differing = [each for each in made if each.before != each.after]
        change.is_recorded = bool(differing)
        if differing:
            states = [each.after for each in differing if each.after is not None]
            gone = [each.name for each in differing if each.after is None]
            await change.run(store.replace_all(states, gone, by))
            change.after = await _setup(change)
    log.info("lanes: a set of %d was loaded by %s; %d changed", len(wanted), by, len(differing))
    await notifications.wake(db, None)
    return LaneSetup(False, made)


async def _setup(db: Runner) -> dict[str, object]:
    present = (await db.run(store.read())).lanes
    return {"lanes": {name: state_of(lane) for name, lane in present.items()}}


async def _waiting(db: Runner, wanted: Sequence[Lane]) -> set[str]:
    """The job types of lanes to be removed that have waiting jobs."""
    removed = removed_lanes(wanted, (await db.run(store.read())).lanes)
    types = [job_type for lane in removed for job_type in lane.job_types]
    return await db.run(store.find_waiting(types)) if types else set()


async def _plan(db: Runner, wanted: Sequence[Lane], waiting: set[str]) -> tuple[SetupChange, ...]:
    present = (await db.run(store.read())).lanes
    running = await db.run(store.count_running())
    return tuple(plan_setup(wanted, present, running, waiting))


async def pause(db: Database, *, by: str) -> Gate:
    """Close the pause gate: no claim commits until it is opened."""
    await _set_gate(db, True, by)
    log.info("pause gate: closed by %s", by)
    return await db.run(store.read_gate())


async def resume_all(db: Database, *, by: str) -> Gate:
    """Open the pause gate; drained lanes stay drained."""
    await _set_gate(db, False, by)
    log.info("pause gate: opened by %s", by)
    await notifications.wake(db, None)
    return await db.run(store.read_gate())


async def _set_gate(db: Database, paused: bool, by: str) -> None:
    check_actor(by)
    action = "gate.shut" if paused else "gate.opened"
    async with audited(db, by, action, "gate", GATE) as change:
        await change.run(store.pause(paused, by))
        await change.compare("gate", GATE, {"paused": paused})


async def _read(db: Runner, name: str) -> Lane:
    lane = (await db.run(store.read())).lanes.get(name)
    if lane is None:
        raise missing("lane", name)
    return lane


async def _wake(db: Database, lane: Lane) -> None:
    if not lane.enabled:
        return
    # The default lane takes every type that no other lane lists, which cannot be listed here.
    if lane.name == DEFAULT_LANE:
        await notifications.wake(db, None)
    elif lane.job_types:
        await notifications.wake(db, lane.job_types)
