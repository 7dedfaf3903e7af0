"""Every accepted change leaves one act, in the transaction of the change itself."""

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
    """A change under way: what runs through it is committed with its act, or not at all.

    `is_act` is set to False where it turns out that nothing was to be done.
    """

    _transaction: Transaction
    action: str
    name: str | None
    workspace: str | None = None
    before: State = None
    after: State = None
    is_act: bool = True

    async def run(self, statement: Statement[T]) -> T:
        return await self._transaction.run(statement)

    async def changes(self, kind: str) -> list[Change]:
        """What this deed has changed of a kind, as the triggers of the history saw it."""
        return await self.run(history.own_changes(kind))

    async def compare(
        self, kind: str, name: str, asked: State, *, as_text: bool = True
    ) -> Change | None:
        """Take before and after from the history, and return that change.

        Where nothing changed, `asked` is both and None is returned.
        """
        made = await self.run(history.own_changes(kind, as_text=as_text))
        for change in reversed(made):
            if change.name == name:
                self.before, self.after = change.before, change.after
                return change
        self.before = self.after = asked
        return None


@asynccontextmanager
async def audited(
    db: Database, by: str, action: str, kind: str, name: str | None = None
) -> AsyncIterator[AuditedChange]:
    """Keeps the act when the block ends well; an error leaves neither change nor act."""
    refusal: NotFound | Refused | None = None
    async with db.transaction() as transaction:
        deed = AuditedChange(transaction, action, name)
        try:
            yield deed
        except (NotFound, Refused) as error:
            # No act; but what the database put right on the way stands, as where an approval that
            # came too late met a job to expire.
            refusal = error
        else:
            if deed.is_act:
                await deed.run(await _act_of(deed, by, kind))
    if refusal is not None:
        raise refusal


async def _act_of(deed: AuditedChange, by: str, kind: str) -> Statement[None]:
    """The act of a deed; large states are looked through while others are served."""
    write = partial(
        store.record,
        by,
        deed.action,
        kind,
        deed.name,
        workspace=deed.workspace,
        before=deed.before,
        after=deed.after,
    )
    if isinstance(deed.before, StoredJson) or isinstance(deed.after, StoredJson):
        return await asyncio.to_thread(write)
    return write()


async def refuse(db: Database, by: str, action: str, kind: str, name: str | None = None) -> None:
    """Keeps that somebody was refused."""
    await db.run(store.record(by, action, kind, _cut(name), outcome="refused"))


async def note(db: Database, by: str, action: str, kind: str, name: str) -> None:
    """Keeps that somebody was let in where nothing is changed."""
    await db.run(store.record(by, action, kind, _cut(name)))


def _cut(name: str | None) -> str | None:
    """As much of what somebody called an object as an act can hold."""
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
    """One page of the audit, newest first; a long search ends before the page is full.

    With `as_text`, large states are `StoredJson`.
    """
    verb_rules.check_page(limit)
    asked = (wanted or AuditFilter()).check()
    before = verb_rules.position(cursor)
    newest = history.NEWEST if before is None else before
    found = await db.run(store.listing(asked, limit=limit, before=newest, as_text=as_text))
    last = found.entries[-1].id if len(found.entries) == limit else found.stopped_at
    return Page(found.entries, None if last is None else str(last))
