"""Draining lanes until they are quiet, and making them again what they were."""

from __future__ import annotations

import asyncio
import logging
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
from laneway.domain.verb_rules import check_words
from laneway.errors import InvalidInput, LanewayError, Refused
from laneway.store import freeze as store
from laneway.store import lanes as lane_store
from laneway.store.database import Database
from laneway.store.freeze import FrozenLane

log = logging.getLogger("laneway.control")

DEADLINE_S: Final = 600.0
JOBS_NAMED: Final = 20
_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 1.0


class Hold(NamedTuple):
    """The lanes that a freeze waits for, and those of them that it may take back."""

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
    """Drains lanes (None: all that are enabled) and waits until no job runs in them.

    After `deadline` seconds it answers what still runs; the lanes stay drained, unless `or_thaw`,
    which takes back what this freeze drained however it ends, but quiet. A second freeze goes on
    waiting and keeps the memory of the first. `clock` and `pause` are for tests.
    """
    check_words(by, None)
    if not 0 <= seconds_of(deadline, "deadline") < math.inf:
        raise InvalidInput("deadline", "must be a number of seconds, 0 or more")
    named = _check_names(lanes)
    ours = await _not_yet_frozen(db, named)
    try:
        hold = Hold(await _freeze(db, named, by), ours)
        seen = await wait(db, hold, deadline, clock=clock, pause=pause)
    except (asyncio.CancelledError, LanewayError):
        # Also before the answer came: the database may have drained them by then.
        if or_thaw:
            await take_back(db, Hold((), ours), by=by)
        raise
    return await end(db, hold, seen, by=by, or_thaw=or_thaw)


# -- the parts of a freeze, for who must not hold a transaction while it waits ----------------


async def begin(db: Database, lanes: Sequence[str] | None = None, *, by: str) -> Hold:
    """Drains lanes (None: all that are enabled)."""
    check_words(by, None)
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
    """What runs in the lanes when they are quiet, or after `deadline` seconds."""
    return await _until_quiet(db, hold.lanes, deadline, clock, pause)


async def end(db: Database, hold: Hold, seen: Freeze, *, by: str, or_thaw: bool) -> Freeze:
    """What came of it; `or_thaw` takes back a freeze that is not quiet."""
    if seen.is_quiet or not or_thaw:
        return seen
    await take_back(db, hold, by=by)
    return Freeze(seen.lanes, seen.waited_s, is_thawed=True)


async def take_back(db: Database, hold: Hold, *, by: str) -> None:
    """Thaws what this freeze has frozen, but not what somebody else has thawed and frozen since."""
    held = {each.lane: each.frozen_by for each in await db.run(store.frozen())}
    await _thaw(db, [name for name in hold.ours if held.get(name) == by], by)


async def _freeze(db: Database, named: Sequence[str] | None, by: str) -> list[str]:
    async with audited(db, by, "lane.frozen", "lane", _only(named)) as deed:
        drained = await deed.run(store.freeze(named, by))
        changed = await deed.changes("lane")
        deed.before = {"enabled": [each.name for each in changed]}
        deed.after = {"frozen": drained}
    log.info("lanes %s: frozen by %s", ", ".join(drained) or "none", by)
    return drained


def _only(lanes: Sequence[str] | None) -> str | None:
    """The lane, if it is about one."""
    return lanes[0] if lanes is not None and len(lanes) == 1 else None


def _check_names(lanes: Sequence[str] | None) -> list[str] | None:
    if lanes is None:
        return None
    # A text is a sequence of texts too, and its letters would be the lanes.
    if isinstance(lanes, str) or not isinstance(lanes, Sequence):
        raise InvalidInput("lanes", "must be a list of names")
    return [check_lane_name(name, "lane") for name in lanes]


async def _not_yet_frozen(db: Database, named: Sequence[str] | None) -> list[str]:
    """The lanes that this freeze would freeze: what another one holds is not ours to thaw."""
    known = (await db.run(lane_store.read())).lanes
    for name in named or ():
        if name not in known:
            raise missing("lane", name)
    held = {each.lane for each in await db.run(store.frozen())}
    wanted = known if named is None else named
    return [name for name in wanted if known[name].enabled or name not in held]


async def _until_quiet(
    db: Database,
    lanes: Sequence[str],
    deadline: float,
    clock: Callable[[], float],
    pause: Callable[[float], Awaitable[None]],
) -> Freeze:
    began = clock()
    wait = _FIRST_PAUSE
    while True:
        watched = await db.run(store.watch(lanes, JOBS_NAMED))
        resumed = [each.lane for each in watched if each.enabled]
        if resumed:
            raise Refused(f"somebody resumed {', '.join(resumed)} meanwhile: it is not frozen")
        seen = Freeze(tuple(watched), clock() - began)
        if seen.is_quiet or seen.waited_s >= deadline:
            return seen
        await pause(min(wait, deadline - seen.waited_s))
        wait = min(wait * 1.5, _LONGEST_PAUSE)


async def thaw(db: Database, lanes: Sequence[str] | None = None, *, by: str) -> list[Thawed]:
    """Makes frozen lanes (None: all) again what they were before, and forgets.

    A lane that was resumed by hand meanwhile stays enabled.
    """
    check_words(by, None)
    wanted = _check_names(lanes)
    if wanted is not None:
        known = {each.lane for each in await db.run(store.frozen())}
        for name in wanted:
            if name not in known:
                raise Refused(f"the lane {name} is not frozen")
    return await _thaw(db, wanted, by)


async def _thaw(db: Database, lanes: Sequence[str] | None, by: str) -> list[Thawed]:
    async with audited(db, by, "lane.thawed", "lane", _only(lanes)) as deed:
        frozen = [each.lane for each in await deed.run(store.frozen())]
        wanted = [name for name in frozen if lanes is None or name in lanes]
        thawed = await deed.run(store.thaw(lanes, by))
        deed.is_act = bool(wanted or thawed)
        deed.before = {"frozen": wanted}
        deed.after = {"enabled": [each.lane for each in thawed if each.enabled]}
    log.info("lanes %s: thawed by %s", ", ".join(each.lane for each in thawed) or "none", by)
    if any(each.enabled for each in thawed):
        await notifications.wake(db, None)
    return thawed


async def frozen(db: Database) -> list[FrozenLane]:
    """The lanes that are frozen, and what each was before."""
    return await db.run(store.frozen())
