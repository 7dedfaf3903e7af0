"""The history and the rollback of any kind of object, done in a database."""

from __future__ import annotations

from laneway.control import history
from laneway.control.operators.table import Operator, PageRequest, implement, implement_list
from laneway.domain.change import Change
from laneway.domain.page import Page
from laneway.operations.operation import Operation


def implement_history(
    kind: str,
    changes: Operation[[str], Page[Change]],
    roll_back: Operation[[str, int | None], Change | None],
) -> None:
    """Bind both operations of a kind."""

    async def restore(who: Operator, name: str, to: int | None = None) -> Change | None:
        return await history.rollback(who.db, kind, name, to=to, by=who.by, as_text=who.as_text)

    implement_changes(kind, changes)
    implement(roll_back, restore)


def implement_changes(kind: str, changes: Operation[[str], Page[Change]]) -> None:
    """Bind the list of changes of a kind."""

    async def listing(who: Operator, page: PageRequest, name: str) -> Page[Change]:
        return await history.page(
            who.db, kind, name, limit=page.limit, cursor=page.cursor, as_text=who.as_text
        )

    implement_list(changes, listing)
