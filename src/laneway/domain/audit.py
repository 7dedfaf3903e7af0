"""Entries of the audit: actor, action, object, door and outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar, Final, Literal, get_args
from uuid import UUID

from annotated_types import Interval, MaxLen, MinLen

from laneway.domain.actor import Door, is_own_request_id
from laneway.domain.annotations import Doc, OneOf
from laneway.domain.duration import CENTURY_S
from laneway.domain.suggestion import suggest
from laneway.domain.text import check_text
from laneway.errors import InvalidInput

Outcome = Literal["done", "refused"]

# Kinds of objects. `route` and `call` are refused requests and refused calls of remote workers.
KINDS: Final = (
    "job", "flow", "event", "lane", "limit", "schedule", "gate", "webhook", "access", "worker",
    "application", "database", "route", "call",
)  # fmt: skip
WORD_BYTES: Final = 512
# The server knows these doors itself; clients name the others.
_SEEN_DOORS: Final = frozenset({"http", "ui", "grpc"})
LONGEST_AGE: Final = CENTURY_S

Word = Annotated[str, MinLen(1), MaxLen(WORD_BYTES)]
ClaimedField = Literal["actor", "door", "request_id"]
Claimed = Annotated[
    tuple[ClaimedField, ...],
    Doc("Fields that the caller reported itself; the server verified the others"),
]


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An audited action: actor, object, interface (`door`) and outcome."""

    computed: ClassVar = ("claimed",)

    id: int
    at: datetime
    actor: str
    principal_id: UUID | None
    door: Door
    action: str
    kind: str
    name: str | None
    workspace: str | None
    outcome: Outcome
    before: Annotated[Mapping[str, object] | None, Doc("null: it was created, or nothing changed")]
    after: Annotated[Mapping[str, object] | None, Doc("null: it was deleted, or nothing changed")]
    request_id: str | None
    address: Annotated[
        str | None, Doc("The connection's address, or the one that a trusted proxy reports")
    ]

    @property
    def claimed(self) -> Claimed:
        """The fields that the caller claimed; the server verified the others.

        Without a principal, a program with a database login wrote the entry. With one, the server
        knows only whether the request came by HTTP, gRPC or a browser's session.
        """
        is_seen = self.door in _SEEN_DOORS
        is_theirs = self.request_id is not None and not is_own_request_id(self.request_id)
        found: dict[ClaimedField, bool] = {
            "actor": self.principal_id is None and not is_seen,
            "door": not is_seen,
            "request_id": is_theirs,
        }
        return tuple(field for field, is_claimed in found.items() if is_claimed)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Conditions that entries must all meet; None is any value.

    `newer_than` is in seconds, by the database's clock.
    """

    actor: Word | None = None
    door: Annotated[str, OneOf(get_args(Door))] | None = None
    action: Word | None = None
    kind: Word | None = None
    name: Word | None = None
    workspace: Word | None = None
    outcome: Annotated[str, OneOf(get_args(Outcome))] | None = None
    since: datetime | None = None
    newer_than: Annotated[float | None, Interval(ge=0, le=LONGEST_AGE), Doc("Seconds")] = None

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
