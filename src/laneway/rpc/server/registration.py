"""What a worker that connects makes known: itself, its job types, the lanes they ask for."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace
from typing import Final, NamedTuple

from laneway.domain.limit import Limit
from laneway.engine.registrar import adopt
from laneway.errors import Forbidden
from laneway.rpc.server.handshake import ServedType, StreamHandshake
from laneway.rpc.server.stream_caller import StreamCaller
from laneway.store import lanes, limits, remote
from laneway.store.database import Database
from laneway.store.lanes import ControlState
from laneway.store.workers import TypeRecord, publish

log = logging.getLogger("laneway")

# Job types named in one line.
_MOST: Final = 3


async def make_known(
    database: Database,
    hello: StreamHandshake,
    caller: StreamCaller,
    published: Collection[str],
) -> ControlState:
    """Publish its job types as far as its token reaches; answers the lanes as they then are.

    With `workers:declare` in the lane of a type the worker changes what is published of it, though
    it takes no approval away. Without, the first publication counts: a type that nobody has
    `published` is published as declared, any other stays as it is.
    """
    by = f"worker {hello.name}"
    # As they are now: a type may have been put into a lane for this worker a moment ago.
    state = await database.run(lanes.read())
    records = [one.record for one in hello.types if one.record and caller.may_run(one.name)]
    placed = [
        (record.lane, record.name)
        for record in records
        if record.lane is not None and _may_place(caller, record, state, published)
    ]
    if placed:
        await adopt(database, placed, by, state)
        state = await database.run(lanes.read())
    mine = [one for one in records if caller.may_claim_in(state.lane_of(one.name))]
    declared = [one for one in mine if caller.may_declare_in(state.lane_of(one.name))]
    if declared:
        await _create_limits(database, declared, by)
        # Whoever may claim jobs may not let them run unapproved.
        await database.run(publish(declared, loosens=False))
    first = [one for one in mine if one not in declared and one.name not in published]
    if first:
        # A limit of a type is held by every job of it: another's is not the worker's to take.
        plain = [replace(one, limits=()) for one in first]
        await database.run(publish(plain, loosens=False, is_first=True))
    return state


def _may_place(
    caller: StreamCaller, record: TypeRecord, state: ControlState, published: Collection[str]
) -> bool:
    """Whether it may put a type, and the jobs of it that wait, into the lane that it asks for."""
    lane, known_in = record.lane or "", state.lane_of(record.name)
    if lane == known_in or not caller.may_claim_in(lane):
        return False
    if caller.may_declare_in(lane) and caller.may_declare_in(known_in):
        return True
    return caller.may_claim_in(known_in) and lane in state.lanes and record.name not in published


class IgnoredParts(NamedTuple):
    """Fields of a declaration that are not in force, and why its schema is refused, if it is."""

    fields: list[str]
    refused: str = ""


async def find_ignored(
    database: Database, hello: StreamHandshake, uncovered: Collection[str]
) -> dict[str, IgnoredParts]:
    """What is in force otherwise than the worker declares, by job type; those uncovered apart."""
    covered = [one for one in hello.types if one.name not in uncovered]
    said = [one.record for one in covered if one.record]
    found = await database.run(remote.find_ignored(said)) if said else {}
    ignored = {name: IgnoredParts(fields) for name, fields in found.items()}
    refused = {one.name: one.refused for one in covered if one.refused}
    for name, reason in refused.items():
        ignored[name] = IgnoredParts(sorted({*found.get(name, ()), "arguments"}), reason)
    for name, reason in list(refused.items())[:_MOST]:
        log.warning(
            "remote worker %s: the schema of the arguments of %s is refused and not published: it"
            " %s; the worker checks them", hello.name, name, reason,
        )  # fmt: skip
    for name, fields in list(found.items())[:_MOST]:
        log.warning(
            "remote worker %s: what it declares of %s is not in force: %s (its token needs"
            " workers:declare to change what is published)",
            hello.name, name, ", ".join(fields),
        )  # fmt: skip
    return ignored


def check_reach(hello: StreamHandshake, caller: StreamCaller, state: ControlState) -> list[str]:
    """Refuses a worker that could never be sent anything; answers the types beyond reach."""
    beyond = [
        one
        for one in hello.types
        if not (caller.may_run(one.name) and caller.may_claim_in(state.lane_of(one.name)))
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


async def _create_limits(database: Database, records: list[TypeRecord], by: str) -> None:
    """A limit that a type names binds from its first job on, also before it was tuned."""
    named = {name for one in records for name in one.limits}
    if not named:
        return
    known = await database.run(limits.find(named))
    for name in sorted(named - known):
        if await database.run(limits.create(Limit(name), by)) is not None:
            log.warning("limit %s did not exist and was created with max_concurrent 1", name)
