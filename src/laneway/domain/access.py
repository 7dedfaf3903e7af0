"""Principals, roles, grants and tokens as people see them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Final, Literal
from unicodedata import is_normalized
from unicodedata import name as unicode_name
from uuid import UUID

from annotated_types import Interval, MaxLen, MinLen

from laneway.domain.annotations import INLINE, Doc, OneOf
from laneway.domain.bounds import GrantBounds
from laneway.domain.duration import DAY_S, YEAR_S
from laneway.domain.job import NAME_BYTES
from laneway.domain.lane import JobType, LaneName, check_job_type, check_lane_name
from laneway.domain.permissions import PERMISSIONS, SCOPES, Scope, check_permissions
from laneway.domain.text import check_name, check_text
from laneway.errors import InvalidInput

Kind = Literal["person", "service"]
KINDS: Final = ("person", "service")
PRINCIPAL_BYTES: Final = 2 * NAME_BYTES
TOKEN_NAME_BYTES: Final = 256
MAX_LANES: Final = 100
MAX_JOB_TYPES: Final = 1000

TOKEN_LIFE_S: Final = 90 * DAY_S
LONGEST_LIFE_S: Final = 10 * YEAR_S

PrincipalName = Annotated[str, MinLen(1), MaxLen(PRINCIPAL_BYTES)]
PrincipalKind = Annotated[str, OneOf(KINDS)]
TokenName = Annotated[str, MinLen(1), MaxLen(TOKEN_NAME_BYTES), Doc("A name for people")]
RoleName = LaneName
Permissions = Annotated[Iterable[Annotated[str, OneOf(PERMISSIONS)]], MinLen(1), MaxLen(100)]
GrantScope = Annotated[str, OneOf(SCOPES)]
Workspace = Annotated[
    Annotated[str, MinLen(1), MaxLen(PRINCIPAL_BYTES)] | None,
    Doc("Required with scope `workspace`"),
]
OnlyLanes = Annotated[Iterable[LaneName], MinLen(1), MaxLen(MAX_LANES), Doc("null: any lane")]
OnlyJobTypes = Annotated[
    Iterable[JobType],
    MinLen(1),
    MaxLen(MAX_JOB_TYPES),
    Doc("Job types it may claim; null: any type"),
]
TokenLife = Annotated[float | None, Interval(ge=1, le=LONGEST_LIFE_S), Doc("Seconds; null: never")]

# Alphabets whose letters look alike.
_LOOKALIKES: Final = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC"})
# Laneway writes these into `created_by` and `approved_by` itself.
_TAKEN_PREFIX: Final = "schedule:"
_TAKEN_NAMES: Final = frozenset({"policy", "laneway"})
# Names that new principals may not have.
_RESERVED: Final = _TAKEN_NAMES | {"nobody", "anonymous", "system"}


@dataclass(frozen=True, slots=True)
class Principal:
    """A person or service that acts; a disabled one can do nothing."""

    id: UUID
    name: str
    kind: Kind
    created_at: datetime
    created_by: str
    disabled_at: datetime | None = None

    @property
    def is_disabled(self) -> bool:
        return self.disabled_at is not None


@dataclass(frozen=True, slots=True)
class Role:
    """A named set of permissions; a seeded one cannot be changed."""

    name: str
    permissions: tuple[str, ...]
    is_seeded: Annotated[bool, Doc("Built in: cannot be changed or deleted")]
    updated_at: datetime
    updated_by: str


@dataclass(frozen=True, slots=True)
class RoleGrant:
    """A role of a principal, and the jobs it covers."""

    id: UUID
    principal: str
    role: str
    scope: Scope
    workspace: str | None
    lanes: tuple[str, ...] | None
    granted_at: datetime
    granted_by: str
    max_priority: Annotated[int | None, Doc("null: the usual bound of the role")] = None
    max_queued: int | None = None
    max_queued_bytes: int | None = None
    max_types: int | None = None

    @property
    def bounds(self) -> GrantBounds:
        return GrantBounds(
            self.max_priority, self.max_queued, self.max_queued_bytes, self.max_types
        )


@dataclass(frozen=True, slots=True)
class Token:
    """A token without its secret."""

    id: UUID
    principal: str
    name: str
    hint: Annotated[str, Doc("The first characters of its secret")]
    permissions: tuple[str, ...] | None
    lanes: tuple[str, ...] | None
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str | None
    last_used_at: datetime | None
    job_types: Annotated[tuple[str, ...] | None, Doc("Job types it may claim; null: any type")] = (
        None
    )


@dataclass(frozen=True, slots=True)
class NewToken:
    """A new token with its secret, which is shown only in this response."""

    secret: Annotated[str, Doc("For `Authorization: Bearer …`; it cannot be shown again")] = field(
        repr=False
    )
    token: Annotated[Token, INLINE]


def check_principal_name(value: object, field: str = "name") -> str:
    """A principal's name, as `created_by` of jobs stores it."""
    name = check_name(value, field, max_bytes=PRINCIPAL_BYTES)
    if not name.isprintable():
        raise InvalidInput(field, "must be printable text without control characters")
    if name in _TAKEN_NAMES or name.startswith(_TAKEN_PREFIX):
        raise InvalidInput(field, f"{name!r} is reserved for Laneway")
    return name


def check_new_principal_name(value: object) -> str:
    """A name for a new principal, which must not look like another one."""
    name = check_principal_name(value)
    if name.casefold() in _RESERVED or name.casefold().startswith(_TAKEN_PREFIX):
        raise InvalidInput("name", f"{name!r} looks like a name that is reserved for Laneway")
    if not is_normalized("NFKC", name):
        raise InvalidInput("name", "contains characters that look like others: write it in NFKC")
    scripts = {unicode_name(char, "").partition(" ")[0] for char in name if char.isalpha()}
    if len(scripts & _LOOKALIKES) > 1:
        raise InvalidInput("name", "mixes alphabets whose letters look alike")
    return name


def check_kind(value: object) -> Kind:
    if value not in KINDS:
        raise InvalidInput("kind", f"must be one of {', '.join(KINDS)}")
    return value


def check_role_permissions(given: object) -> tuple[str, ...]:
    """The permissions of a role, or those that a token is narrowed to; at least one."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidInput("permissions", "must be a list")
    chosen = check_permissions(name if isinstance(name, str) else repr(name) for name in given)
    if not chosen:
        raise InvalidInput("permissions", "must name at least one")
    return chosen


def check_lanes(given: object) -> tuple[str, ...] | None:
    """Names of lanes, each once, or None for any lane."""
    return _check_names(given, "lanes", check_lane_name, MAX_LANES, "any lane")


def check_job_types(given: object) -> tuple[str, ...] | None:
    """Names of job types, each once, or None for any."""
    return _check_names(given, "job_types", check_job_type, MAX_JOB_TYPES, "any type")


def _check_names(
    given: object, field: str, check: Callable[[object, str], str], most: int, default: str
) -> tuple[str, ...] | None:
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidInput(field, "must be a list of names")
    names = {check(name, field) for name in given}
    if not 1 <= len(names) <= most:
        raise InvalidInput(field, f"must be 1 to {most} names; leave it out for {default}")
    return tuple(sorted(names))


def check_scope(scope: object, workspace: object) -> tuple[Scope, str | None]:
    """A scope and its workspace."""
    if scope not in SCOPES:
        raise InvalidInput("scope", f"must be one of {', '.join(SCOPES)}")
    place = None if workspace is None else check_text(workspace, "workspace", max_bytes=NAME_BYTES)
    if scope == "workspace" and place is None:
        raise InvalidInput("workspace", "must be given for the scope workspace")
    if scope == "all" and place is not None:
        raise InvalidInput("workspace", "must not be given for the scope all")
    return scope, place


def check_token_name(value: object) -> str:
    """A token's name, for people."""
    return check_name(value, "name", max_bytes=TOKEN_NAME_BYTES)


def check_life(seconds: object) -> float | None:
    """The seconds until a token expires; None: it never does."""
    if seconds is None:
        return None
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool):
        raise InvalidInput("expires_in", "must be a number of seconds")
    if not 1 <= seconds <= LONGEST_LIFE_S:
        raise InvalidInput("expires_in", f"must be from 1 second to {LONGEST_LIFE_S:.0f} seconds")
    return float(seconds)
