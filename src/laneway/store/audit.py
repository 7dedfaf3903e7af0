"""The audit log, as statements: entries are added and read, never changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import NamedTuple

from laneway.domain.actor import Actor
from laneway.domain.audit import AuditEntry, AuditFilter, Outcome
from laneway.domain.redaction import may_have_secret_field, redact_fields
from laneway.domain.stored_json import StoredJson
from laneway.store.history import NEWEST, state_of
from laneway.store.statement import Row, Statement, nothing

# How many entries one search reads.
SCAN = 50_000


def record(
    by: str,
    action: str,
    kind: str,
    name: str | None = None,
    *,
    workspace: str | None = None,
    outcome: Outcome = "done",
    before: Mapping[str, object] | StoredJson | None = None,
    after: Mapping[str, object] | StoredJson | None = None,
) -> Statement[None]:
    """Adds an entry, with likely secrets redacted."""
    actor = Actor.of(by)
    return Statement(
        "audit/record_entry",
        nothing,
        {
            "actor": str(actor),
            "principal": actor.principal_id,
            "door": actor.door,
            "action": action,
            "kind": kind,
            "name": name,
            "workspace": workspace,
            "outcome": outcome,
            "before": _json(before),
            "after": _json(after),
            "request": actor.request_id,
            "address": actor.address,
        },
    )


def _json(state: Mapping[str, object] | StoredJson | None) -> str | None:
    if state is None:
        return None
    if not isinstance(state, StoredJson):
        return json.dumps(redact_fields(state), default=str)
    text = state.text.decode()
    return json.dumps(redact_fields(json.loads(text))) if may_have_secret_field(text) else text


def _entry(row: Row, *, as_text: bool) -> AuditEntry:
    values = list(row)
    values[10:12] = (state_of(text, as_text=as_text) for text in row[10:12])
    return AuditEntry(*values)


class FoundEntries(NamedTuple):
    """Entries, newest first; `stopped_at` is where a search ended before the page was full."""

    entries: list[AuditEntry]
    stopped_at: int | None


def listing(
    wanted: AuditFilter,
    *,
    limit: int = 50,
    before: int = NEWEST,
    scan: int | None = None,
    as_text: bool = False,
) -> Statement[FoundEntries]:
    """Entries with ids below `before`, newest first, within the reach of one search.

    With `as_text`, large states are `StoredJson`.
    """
    params = {field.name: getattr(wanted, field.name) for field in fields(wanted)}

    def decode(rows: list[Row]) -> FoundEntries:
        entries = [_entry(row[:-1], as_text=as_text) for row in rows if not row[-1]]
        return FoundEntries(entries, rows[-1][0] if len(entries) < len(rows) else None)

    return Statement(
        "audit/list_entries",
        decode,
        {**params, "limit": limit, "before_id": before, "scan": scan or SCAN},
        may_be_large=True,
    )
