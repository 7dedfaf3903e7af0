"""Entries of the audit: actor, action, object, door and outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, get_args
from uuid import UUID

from laneway.domain.actor import Door, is_own_request_id
from laneway.domain.duration import CENTURY_S
from laneway.domain.missing import suggest
from laneway.domain.text import check_text
from laneway.errors import InvalidInput

Outcome = Literal["done", "refused"]

# Kinds of objects. `route` and `call` are refused requests and refused calls of remote workers.
KINDS: Final = (
    "job", "lane", "limit", "schedule", "gate", "access", "worker", "application", "database",
    "route", "call",
)  # fmt: skip
WORD_BYTES: Final = 512
# The server knows these doors itself; clients name the others.
_SEEN_DOORS: Final = frozenset({"http", "ui", "grpc"})
LONGEST_AGE: Final = CENTURY_S


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One row of the audit; `before` is None for a creation, `after` for a deletion."""

    id: int
    at: datetime
    actor: str
    principal_id: UUID | None
    door: str
    action: str
    kind: str
    name: str | None
    workspace: str | None
    outcome: Outcome
    before: Mapping[str, object] | None
    after: Mapping[str, object] | None
    request_id: str | None
    address: str | None

    @property
    def claimed(self) -> tuple[str, ...]:
        """The fields that the caller claimed; the server verified the others.

        Without a principal, a program with a database login wrote the entry. With one, the server
        knows only whether the request came by HTTP, gRPC or a browser's session.
        """
        is_seen = self.door in _SEEN_DOORS
        return tuple(
            field
            for field, is_claimed in (
                ("actor", self.principal_id is None and not is_seen),
                ("door", not is_seen),
                (
                    "request_id",
                    self.request_id is not None and not is_own_request_id(self.request_id),
                ),
            )
            if is_claimed
        )

    def to_dict(self) -> dict[str, object]:
        return {
            "id": self.id,
            "at": self.at.isoformat(),
            "actor": self.actor,
            "principal_id": None if self.principal_id is None else str(self.principal_id),
            "door": self.door,
            "action": self.action,
            "kind": self.kind,
            "name": self.name,
            "workspace": self.workspace,
            "outcome": self.outcome,
            "before": self.before,
            "after": self.after,
            "request_id": self.request_id,
            "address": self.address,
            "claimed": list(self.claimed),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Conditions that entries must all meet; None is any value.

    `newer_than` is in seconds, by the database's clock.
    """

    actor: str | None = None
    door: str | None = None
    action: str | None = None
    kind: str | None = None
    name: str | None = None
    workspace: str | None = None
    outcome: str | None = None
    since: datetime | None = None
    newer_than: float | None = None

    def check(self) -> AuditFilter:
        """This filter; InvalidInput names the field and the rule that it breaks."""
        for field in ("actor", "action", "kind", "name", "workspace"):
            value = getattr(self, field)
            if value is not None:
                check_text(value, field, max_bytes=WORD_BYTES)
        for field, known in (
            ("kind", KINDS),
            ("door", get_args(Door)),
            ("outcome", get_args(Outcome)),
        ):
            value = getattr(self, field)
            if value is not None and value not in known:
                near = suggest(value, known)
                raise InvalidInput(field, f"must be one of {', '.join(known)}{near}")
        _check_time(self.since)
        age = self.newer_than
        if age is not None and not (type(age) in (int, float) and 0 <= age <= LONGEST_AGE):
            raise InvalidInput("newer_than", "must be a number of seconds, up to 100 years")
        return self


def _check_time(since: object) -> None:
    if since is None:
        return
    if not isinstance(since, datetime) or since.utcoffset() is None:
        raise InvalidInput("since", "must be a time with a time zone")
