"""Freeze and thaw: drain lanes until nothing runs, and restore them."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from laneway.control import notifications
from laneway.control.audit import audited
from laneway.domain.duration import seconds_of
from laneway.domain.freeze import Freeze, Thawed
from laneway.domain.lane import check_lane_name
from laneway.domain.missing import missing
from laneway.domain.verb_rules import check_actor
from laneway.errors import InvalidInput, LanewayError, Refused
from laneway.observability.safe_logger import SafeLogger
from laneway.store import freeze as store
from laneway.store import lanes as lane_store
from laneway.store.database import Database
from laneway.store.freeze import FrozenLane

log = SafeLogger("laneway.control")

DEADLINE_S: Final = 600.0
JOBS_NAMED: Final = 20
_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 1.0


class Hold(NamedTuple):
    """The lanes that a freeze waits for, and those that it drained itself."""

    lanes: Sequence[str]
    ours: Sequence[str]


async def freeze(
    db: Database,
    lanes: Sequence[str] | None = None,
    *,
    by: str,
    deadline: float = DEADLINE_S,
    or_thaw: bool = False,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Freeze:
    """Drain lanes (None: all that are enabled) and wait until no job runs in them.

    After `deadline` seconds it returns what still runs, and the lanes stay drained. With `or_thaw`,
    a freeze that does not become quiet thaws what it drained. A second freeze continues to wait and
    keeps the states that the first one stored. `clock` and `pause` are for tests.
    """
    check_actor(by)
    if not 0 <= seconds_of(deadline, "deadline") < math.inf:
        raise InvalidInput("deadline", "must be a number of seconds, 0 or more")
    named = _check_names(lanes)
    ours = await _not_yet_frozen(db, named)
    try:
        hold = Hold(await _freeze(db, named, by), ours)
        seen = await wait(db, hold, deadline, clock=clock, pause=pause)
    except (asyncio.CancelledError, LanewayError):
        # Even without a result, the database may have drained them.
        if or_thaw:
            await undo(db, Hold((), ours), by=by)
        raise
    return await end(db, hold, seen, by=by, or_thaw=or_thaw)


# -- the parts of a freeze, for callers that must not wait in a transaction -------------------


async def begin(db: Database, lanes: Sequence[str] | None = None, *, by: str) -> Hold:
    """Drain lanes (None: all that are enabled)."""
    check_actor(by)
    named = _check_names(lanes)
    ours = await _not_yet_frozen(db, named)
    return Hold(await _freeze(db, named, by), ours)


async def wait(
    db: Database,
    hold: Hold,
    deadline: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Freeze:
    """Wait until the lanes are quiet, at most `deadline` seconds."""
    began = clock()
    delay = _FIRST_PAUSE
    while True:
        watched = await db.run(store.progress(hold.lanes, JOBS_NAMED))
        resumed = [lane.lane for lane in watched if lane.enabled]
        if resumed:
            raise Refused(f"{', '.join(resumed)} was resumed during the freeze: it is not frozen")
        seen = Freeze(tuple(watched), round(clock() - began, 3))
        if seen.is_quiet or seen.waited_s >= deadline:
            return seen
        await pause(min(delay, deadline - seen.waited_s))
        delay = min(delay * 1.5, _LONGEST_PAUSE)


async def end(db: Database, hold: Hold, seen: Freeze, *, by: str, or_thaw: bool) -> Freeze:
    """The result; `or_thaw` undoes a freeze that is not quiet."""
    if seen.is_quiet or not or_thaw:
        return seen
    thawed = await undo(db, hold, by=by)
    left = tuple(name for name in hold.lanes if name not in thawed)
    return Freeze(seen.lanes, seen.waited_s, is_thawed=bool(thawed), left_frozen=left)


async def undo(db: Database, hold: Hold, *, by: str) -> set[str]:
    """Thaw the lanes of this freeze, except those that another caller froze since."""
    held = {each.lane: each.frozen_by for each in await db.run(store.frozen())}
    wanted = [name for name in hold.ours if held.get(name) == by]
    return {each.lane for each in await _thaw(db, wanted, by)}


async def _freeze(db: Database, named: Sequence[str] | None, by: str) -> list[str]:
    async with audited(db, by, "lane.frozen", "lane", _only(named)) as change:
        drained = await change.run(store.freeze(named, by))
        changed = await change.changes("lane")
        change.before = {"enabled": [each.name for each in changed]}
        change.after = {"frozen": drained}
    log.info("lanes %s: frozen by %s", ", ".join(drained) or "none", by)
    return drained


def _only(lanes: Sequence[str] | None) -> str | None:
    """The lane, if there is exactly one."""
    return lanes[0] if lanes is not None and len(lanes) == 1 else None


def _check_names(lanes: Sequence[str] | None) -> list[str] | None:
    if lanes is None:
        return None
    # A text is a sequence too: its letters would be lanes.
    if isinstance(lanes, str) or not isinstance(lanes, Sequence):
        raise InvalidInput("lanes", "must be a list of names")
    return [check_lane_name(name, "lane") for name in lanes]


async def _not_yet_frozen(db: Database, named: Sequence[str] | None) -> list[str]:
    """The lanes that this freeze would freeze, and may thaw; other freezes hold the rest."""
    known = (await db.run(lane_store.read())).lanes
    for name in named or ():
        if name not in known:
            raise missing("lane", name)
    held = {each.lane for each in await db.run(store.frozen())}
    wanted = known if named is None else named
    return [name for name in wanted if known[name].enabled or name not in held]


async def thaw(db: Database, lanes: Sequence[str] | None = None, *, by: str) -> list[Thawed]:
    """Restore frozen lanes (None: all) to their state before the freeze.

    A lane that was resumed by hand meanwhile stays enabled.
    """
    check_actor(by)
    wanted = _check_names(lanes)
    if wanted is not None:
        known = {each.lane for each in await db.run(store.frozen())}
        for name in wanted:
            if name not in known:
                raise Refused(f"the lane {name} is not frozen")
    return await _thaw(db, wanted, by)


async def _thaw(db: Database, lanes: Sequence[str] | None, by: str) -> list[Thawed]:
    async with audited(db, by, "lane.thawed", "lane", _only(lanes)) as change:
        frozen = [each.lane for each in await change.run(store.frozen())]
        wanted = [name for name in frozen if lanes is None or name in lanes]
        thawed = await change.run(store.thaw(lanes, by))
        change.is_recorded = bool(wanted or thawed)
        change.before = {"frozen": wanted}
        change.after = {"enabled": [each.lane for each in thawed if each.enabled]}
    log.info("lanes %s: thawed by %s", ", ".join(each.lane for each in thawed) or "none", by)
    if any(each.enabled for each in thawed):
        await notifications.wake(db, None)
    return thawed


async def frozen(db: Database) -> list[FrozenLane]:
    """The frozen lanes, and the state of each before."""
    return await db.run(store.frozen())
