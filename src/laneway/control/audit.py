"""The audit: every accepted change writes one entry, in its own transaction."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, TypeVar

from laneway.domain import verb_rules
from laneway.domain.audit import WORD_BYTES, AuditEntry, AuditFilter
from laneway.domain.change import Change
from laneway.domain.page import Page
from laneway.domain.stored_json import StoredJson
from laneway.domain.text import escape_text
from laneway.errors import NotFound, Refused
from laneway.store import audit as store
from laneway.store import history
from laneway.store.database import Database, Transaction
from laneway.store.statement import Statement

T = TypeVar("T")

State: TypeAlias = Mapping[str, object] | StoredJson | None


@dataclass(slots=True)
class AuditedChange:
    """A change in progress, committed together with its audit entry.

    Set `is_recorded` to False if nothing changed: then no entry is written.
    """

    _transaction: Transaction
    action: str
    name: str | None
    workspace: str | None = None
    before: State = None
    after: State = None
    is_recorded: bool = True

    async def run(self, statement: Statement[T]) -> T:
        return await self._transaction.run(statement)

    async def changes(self, kind: str) -> list[Change]:
        """The changes of a kind in this transaction, as the triggers of the history saw them."""
        return await self.run(history.transaction_changes(kind))

    async def compare(
        self, kind: str, name: str, requested: State, *, as_text: bool = True
    ) -> Change | None:
        """Take before and after from the history, and return that change.

        If nothing changed, both are `requested` and it returns None.
        """
        made = await self.run(history.transaction_changes(kind, as_text=as_text))
        for each in reversed(made):
            if each.name == name:
                self.before, self.after = each.before, each.after
                return each
        self.before = self.after = requested
        return None


@asynccontextmanager
async def audited(
    db: Database, by: str, action: str, kind: str, name: str | None = None
) -> AsyncIterator[AuditedChange]:
    """Write the audit entry if the block succeeds; an error undoes the change too."""
    refusal: NotFound | Refused | None = None
    async with db.transaction() as transaction:
        change = AuditedChange(transaction, action, name)
        try:
            yield change
        except (NotFound, Refused) as error:
            # No entry, but commit what the database corrected meanwhile: a late approval may have
            # expired the job.
            refusal = error
        else:
            if change.is_recorded:
                await change.run(await _entry_of(change, by, kind))
    if refusal is not None:
        raise refusal


async def _entry_of(change: AuditedChange, by: str, kind: str) -> Statement[None]:
    """The statement for the audit entry; a thread redacts large states."""
    write = partial(
        store.record,
        by,
        change.action,
        kind,
        change.name,
        workspace=change.workspace,
        before=change.before,
        after=change.after,
    )
    if isinstance(change.before, StoredJson) or isinstance(change.after, StoredJson):
        return await asyncio.to_thread(write)
    return write()


async def refuse(db: Database, by: str, action: str, kind: str, name: str | None = None) -> None:
    """Record a refused request."""
    await db.run(store.record(by, action, kind, _cut(name), outcome="refused"))


async def note(db: Database, by: str, action: str, kind: str, name: str) -> None:
    """Record an accepted request that changes nothing."""
    await db.run(store.record(by, action, kind, _cut(name)))


def _cut(name: str | None) -> str | None:
    """The name that a caller gave, cut to the size that an entry can store."""
    if name is None:
        return None
    return escape_text(name).encode()[:WORD_BYTES].decode(errors="ignore")


async def listing(
    db: Database,
    wanted: AuditFilter | None = None,
    *,
    limit: int = 50,
    cursor: str | None = None,
    as_text: bool = False,
) -> Page[AuditEntry]:
    """One page of the audit, newest first; a long search stops before the page is full.

    With `as_text`, large states are `StoredJson`.
    """
    verb_rules.check_page(limit)
    asked = (wanted or AuditFilter()).check()
    before = verb_rules.position(cursor)
    newest = history.NEWEST if before is None else before
    found = await db.run(store.listing(asked, limit=limit, before=newest, as_text=as_text))
    last = found.entries[-1].id if len(found.entries) == limit else found.stopped_at
    return Page(found.entries, None if last is None else str(last))
