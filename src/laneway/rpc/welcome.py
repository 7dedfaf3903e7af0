"""What a worker that connects makes known: itself, its job types, the lanes they ask for."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final

from laneway.domain.limit import Limit
from laneway.errors import Forbidden
from laneway.rpc.caller import Caller
from laneway.rpc.hello import Hello, ServedType
from laneway.store import lanes, limits
from laneway.store.database import Database
from laneway.store.lanes import ControlState
from laneway.store.workers import TypeRecord, publish

log = logging.getLogger("laneway")

# Job types named in one line.
_MOST: Final = 3


async def make_known(
    database: Database,
    hello: Hello,
    caller: Caller,
    state: ControlState,
    published: Collection[str],
) -> ControlState:
    """Publishes its job types as far as its token reaches; answers the lanes as they then are.

    Lanes are created, and types put there, only within the lanes of the token; a type that others
    have `published` beyond them comes from there with its jobs, so only if the token names it.
    """
    by = f"worker {hello.name}"
    records = [one.record for one in hello.types if one.record and _may_name(caller, one.name)]
    named: list[tuple[str, str | None]] = []
    for record in records:
        lane = record.lane
        known_in = state.lane_of(record.name)
        if lane is None or known_in == lane or not _may_use(caller, lane):
            continue
        if record.name in published and not _may_use(caller, known_in) and caller.job_types is None:
            continue
        named.append((lane, record.name))
    if named:
        await database.run(lanes.adopt_types(named, by))
        state = await database.run(lanes.read())
    mine = [one for one in records if _may_use(caller, state.lane_of(one.name))]
    if mine:
        await _create_limits(database, mine, by)
        # Whoever may claim jobs may not let them run unapproved.
        await database.run(publish(mine, loosens=False))
    return state


def check_reach(hello: Hello, caller: Caller, state: ControlState) -> list[str]:
    """Refuses a worker that could never be sent anything; answers the types beyond reach."""
    beyond = [
        one
        for one in hello.types
        if not (_may_name(caller, one.name) and _may_use(caller, state.lane_of(one.name)))
    ]
    names = [one.name for one in beyond]
    if not beyond or hello.max_in_flight == 0:
        return names
    more = f" and {len(beyond) - _MOST} more" if len(beyond) > _MOST else ""
    # In which lanes they are is for our log alone: types can be guessed.
    log.warning(
        "remote worker %s: its token does not cover %s%s: it is sent none of them",
        hello.name, ", ".join(_placed(one, state) for one in beyond[:_MOST]), more,
    )  # fmt: skip
    if len(beyond) == len(hello.types):
        shown = ", ".join(names[:_MOST])
        raise Forbidden(
            f"the token covers {caller.reach}, and none of the worker's job types: {shown}{more}"
        )
    return names


def _placed(served: ServedType, state: ControlState) -> str:
    lane = state.lane_of(served.name)
    asked = served.record.lane if served.record else None
    wanted = f" (declared for {asked})" if asked not in (None, lane) else ""
    return f"{served.name} in lane {lane}{wanted}"


def _may_use(caller: Caller, lane: str) -> bool:
    return caller.lanes is None or lane in caller.lanes


def _may_name(caller: Caller, job_type: str) -> bool:
    return caller.job_types is None or job_type in caller.job_types


async def _create_limits(database: Database, records: list[TypeRecord], by: str) -> None:
    """A limit that a type names binds from its first job on, also before it was tuned."""
    named = {name for one in records for name in one.limits}
    if not named:
        return
    known = await database.run(limits.find(named))
    for name in sorted(named - known):
        if await database.run(limits.create(Limit(name), by)) is not None:
            log.warning("limit %s did not exist and was created with max_concurrent 1", name)
