"""The history of lanes, limits, schedules and the pause gate, as statements."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from laneway.domain.change import Change
from laneway.domain.stored_json import stored_json
from laneway.store.statement import Row, Statement, one_row

NEWEST = 2**63 - 1


def state_of(text: str | None, *, as_text: bool = False) -> Any:
    """Decodes a state; an unreadable one must not hide the rest of the history.

    With `as_text`, large ones are `StoredJson`.
    """
    if text is None:
        return None
    kept = stored_json(text) if as_text else None
    if kept is not None:
        return kept
    try:
        return dict(json.loads(text))
    except (ValueError, RecursionError):
        return {"unreadable": text}


def _change(row: Row, *, as_text: bool = False) -> Change:
    number, at, by, kind, name, *states = row
    before, after = (state_of(text, as_text=as_text) for text in states)
    return Change(number, at, by, kind, name, before, after)


def listing(
    kinds: Sequence[str],
    name: str | None = None,
    *,
    limit: int = 50,
    before: int = NEWEST,
    as_text: bool = False,
) -> Statement[list[Change]]:
    """Changes with ids below `before`, newest first; `as_text`: large states as `StoredJson`."""
    return Statement(
        "history/list_changes",
        lambda rows: [_change(row, as_text=as_text) for row in rows],
        {"kinds": list(kinds), "name": name, "limit": limit, "before": before},
        may_be_large=True,
    )


class RollbackAnswer(NamedTuple):
    """The result: done (as the change `id`), same, needed, no_object or no_change.

    `blocker`: for needed, what still needs the object.
    """

    answer: str
    id: int | None
    blocker: str | None


def roll_back(kind: str, name: str, to: int | None, by: str) -> Statement[RollbackAnswer]:
    """Restores the state before the newest change, or right after the change `to`."""
    return Statement(
        "history/restore_state",
        one_row(RollbackAnswer),
        {"kind": kind, "name": name, "to": to, "by": by},
    )


def workspace_of(change: int) -> Statement[str | None]:
    """The workspace of the changed object, without reading its whole state."""
    return Statement("history/read_workspace", lambda rows: rows[0][0], {"id": change})


def transaction_changes(kind: str, *, as_text: bool = False) -> Statement[list[Change]]:
    """The changes that the current transaction has made so far, oldest first.

    With `as_text`, large states are `StoredJson`.
    """
    return Statement(
        "history/list_transaction_changes",
        lambda rows: [_change(row, as_text=as_text) for row in rows],
        {"kind": kind},
        may_be_large=True,
    )
