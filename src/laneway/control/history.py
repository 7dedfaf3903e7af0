"""The history of the control plane, and rollbacks.

Triggers record every change of lanes, limits, schedules and the pause gate, even by plain SQL.
"""

from __future__ import annotations

from collections.abc import Sequence

from laneway.control import notifications
from laneway.control.audit import AuditedChange, audited
from laneway.domain.change import KINDS, LARGEST_ID, RESTORABLE, Change
from laneway.domain.lane import check_lane_name
from laneway.domain.page import Page
from laneway.domain.verb_rules import check_actor, check_page, position
from laneway.errors import InvalidInput, NotFound, Refused
from laneway.observability.safe_logger import SafeLogger
from laneway.store import history as store
from laneway.store.database import Database

log = SafeLogger("laneway.control")


async def history(
    db: Database,
    kind: str | Sequence[str],
    name: str | None = None,
    *,
    limit: int = 50,
    before: int | None = None,
    as_text: bool = False,
) -> list[Change]:
    """Changes of one object or of all of a kind, newest first; `before` requests older ones.

    With `as_text`, large states are `StoredJson`.
    """
    kinds = [kind] if isinstance(kind, str) else list(kind)
    for each in kinds:
        _check_kind(each, KINDS)
    check_page(limit)
    newest = store.NEWEST if before is None else _check_id(before, "before")
    wanted = check_lane_name(name) if name is not None else None
    return await db.run(store.listing(kinds, wanted, limit=limit, before=newest, as_text=as_text))


async def page(
    db: Database, kind: str, name: str, *, limit: int, cursor: str | None, as_text: bool = False
) -> Page[Change]:
    """One page of the changes of one object, newest first."""
    before = position(cursor)
    if before is not None:
        before = min(before, LARGEST_ID)
    found = await history(db, kind, name, limit=limit, before=before, as_text=as_text)
    return Page(found, str(found[-1].id) if len(found) == limit else None)


async def rollback(
    db: Database, kind: str, name: str, *, to: int | None = None, by: str, as_text: bool = False
) -> Change | None:
    """Restore an object to its state before its newest change, or right after the change `to`.

    `to=0` is the state before the first kept change. This may delete or create the object. Returns
    the change that it made; None: the object already had that state. With `as_text`, large states
    are `StoredJson`.
    """
    check_actor(by)
    _check_kind(kind, RESTORABLE)
    check_lane_name(name)
    if to is not None:
        _check_id(to, "to")
    try:
        async with audited(db, by, f"{kind}.rolled_back", kind, name) as audited_change:
            change = await _roll_back(audited_change, kind, name, to, by, as_text=as_text)
    except InvalidInput as error:
        # The state was valid once; today's rules refuse it, which is not an input error.
        raise Refused(f"the {kind} {name} cannot be rolled back: {error}") from error
    if change is None:
        return None
    log.info("%s %s: rolled back (%s) by %s", kind, name, change.verb, by)
    if kind != "schedule":
        await notifications.wake(db, None)
    return change


async def _roll_back(
    audited_change: AuditedChange, kind: str, name: str, to: int | None, by: str, *, as_text: bool
) -> Change | None:
    answer = await audited_change.run(store.roll_back(kind, name, to, by))
    if answer.answer == "no_object":
        message = f"no {kind} {name}, and no change of it is stored"
        raise NotFound(message, kind=kind, name=name)
    if answer.answer == "no_change":
        which = f"change {to}" if to else "change"
        raise NotFound(f"no {which} of the {kind} {name} is stored")
    if answer.answer == "needed":
        raise Refused(
            f"the {kind} {name} cannot be rolled back, because that would delete it: "
            f"{answer.blocker}"
        )
    if answer.id is None:
        audited_change.is_recorded = False
        return None
    (change,) = await audited_change.run(
        store.listing([kind], limit=1, before=answer.id + 1, as_text=as_text)
    )
    audited_change.before, audited_change.after = change.before, change.after
    audited_change.workspace = await audited_change.run(store.workspace_of(change.id))
    return change


def _check_kind(kind: str, known: tuple[str, ...]) -> None:
    if kind not in known:
        raise InvalidInput("kind", f"must be one of {', '.join(known)}")


def _check_id(value: int, field: str) -> int:
    if type(value) is not int or not 0 <= value <= LARGEST_ID:
        raise InvalidInput(field, "must be the id of a change, as the history shows it")
    return value
