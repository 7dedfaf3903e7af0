"""Registers the job types of a connecting worker, and the lanes and limits they name."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final, NamedTuple
from uuid import UUID

from laneway.domain.job_type_policy import TypeRecord
from laneway.engine.registrar import adopt
from laneway.errors import Forbidden
from laneway.observability.safe_logger import SafeLogger
from laneway.rpc.server.handshake import ServedType, StreamHandshake
from laneway.rpc.server.stream_caller import StreamCaller
from laneway.store import lanes, remote
from laneway.store.database import Database
from laneway.store.lanes import ControlState
from laneway.store.missing_limits import create_missing
from laneway.store.remote import StreamInfo
from laneway.store.workers import publish

log = SafeLogger("laneway")

# Job types named in one line.
_MAX_SHOWN: Final = 3


async def register_types(
    database: Database,
    handshake: StreamHandshake,
    caller: StreamCaller,
    published: Collection[str],
) -> ControlState:
    """Publishes the worker's job types as far as its token allows; returns the lanes afterwards.

    With `workers:declare` in the lane of a type the worker may change its published record, but
    not remove an approval. Without it, a type that is not in `published` is published as
    declared, and any other stays as it is.
    """
    by = f"worker {handshake.name}"
    # Read now: a type may just have been moved into a lane for this worker.
    state = await database.run(lanes.read())
    records = [one.record for one in handshake.types if one.record and caller.may_run(one.name)]
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
        await create_missing(database, {name for one in declared for name in one.limits}, by)
        # A worker that may claim jobs must not let them run unapproved.
        await database.run(publish(declared, loosens=False))
    first = [one for one in mine if one not in declared and one.name not in published]
    if first:
        # Every job of a type holds its limits: a worker must not take limits of others.
        plain = [replace(one, limits=()) for one in first]
        await database.run(publish(plain, loosens=False, is_first=True))
    return state


def _may_place(
    caller: StreamCaller, record: TypeRecord, state: ControlState, published: Collection[str]
) -> bool:
    """Whether the worker may move a type, with its waiting jobs, into the lane it declares."""
    lane, known_in = record.lane or "", state.lane_of(record.name)
    if lane == known_in or not caller.may_claim_in(lane):
        return False
    if caller.may_declare_in(lane) and caller.may_declare_in(known_in):
        return True
    return caller.may_claim_in(known_in) and lane in state.lanes and record.name not in published


class IgnoredParts(NamedTuple):
    """Fields of a declaration that are not in force; `refused` says why its schema is not."""

    fields: list[str]
    refused: str = ""


async def find_ignored(
    database: Database, handshake: StreamHandshake, uncovered: Collection[str]
) -> dict[str, IgnoredParts]:
    """Parts of the worker's declarations that are not in force, by covered job type."""
    covered = [one for one in handshake.types if one.name not in uncovered]
    declared = [one.record for one in covered if one.record]
    found = await database.run(remote.find_ignored(declared)) if declared else {}
    ignored = {name: IgnoredParts(fields) for name, fields in found.items()}
    refused = {one.name: one.refused for one in covered if one.refused}
    for name, reason in refused.items():
        ignored[name] = IgnoredParts(sorted({*found.get(name, ()), "arguments"}), reason)
    for name, reason in list(refused.items())[:_MAX_SHOWN]:
        log.warning(
            "remote worker %s: the argument schema of %s is not published, because it %s;"
            " the worker checks arguments", handshake.name, name, reason,
        )  # fmt: skip
    for name, fields in list(found.items())[:_MAX_SHOWN]:
        log.warning(
            "remote worker %s: its declaration of %s is not in force: %s (its token needs"
            " workers:declare to change the published record)",
            handshake.name, name, ", ".join(fields),
        )  # fmt: skip
    return ignored


def check_coverage(
    handshake: StreamHandshake, caller: StreamCaller, state: ControlState
) -> list[str]:
    """The job types that the token does not cover; Forbidden if it covers none."""
    beyond = [
        one
        for one in handshake.types
        if not (caller.may_run(one.name) and caller.may_claim_in(state.lane_of(one.name)))
    ]
    names = [one.name for one in beyond]
    if not beyond or handshake.max_in_flight == 0:
        return names
    more = f" and {len(beyond) - _MAX_SHOWN} more" if len(beyond) > _MAX_SHOWN else ""
    # Only the log names the lanes: a caller could guess job types to learn them.
    log.warning(
        "remote worker %s: its token does not cover %s%s: it gets none of these jobs",
        handshake.name, ", ".join(_placed(one, state) for one in beyond[:_MAX_SHOWN]), more,
    )  # fmt: skip
    if len(beyond) == len(handshake.types):
        shown = ", ".join(names[:_MAX_SHOWN])
        raise Forbidden(
            f"the token covers {caller.coverage}, but none of the worker's job types: {shown}{more}"
        )
    return names


def _placed(served: ServedType, state: ControlState) -> str:
    lane = state.lane_of(served.name)
    asked = served.record.lane if served.record else None
    wanted = f" (declared for {asked})" if asked not in (None, lane) else ""
    return f"{served.name} in lane {lane}{wanted}"


def stream_info(handshake: StreamHandshake, caller: StreamCaller, stream_id: UUID) -> StreamInfo:
    """The row of a worker, as its handshake describes it."""
    return StreamInfo(
        id=handshake.worker_id,
        stream_id=stream_id,
        principal_id=caller.principal_id,
        name=handshake.name,
        host=handshake.host,
        pid=handshake.pid,
        code=handshake.code,
        job_types=sorted(one.name for one in handshake.types),
        lanes=None if caller.lanes is None else sorted(caller.lanes),
        concurrency=handshake.max_in_flight,
        memory_bytes=handshake.memory_bytes,
    )
