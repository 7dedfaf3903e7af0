"""Principals, roles, grants and tokens as people see them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final, Literal, NamedTuple
from unicodedata import is_normalized
from unicodedata import name as unicode_name
from uuid import UUID

from laneway.domain.bounds import GrantBounds
from laneway.domain.duration import DAY_S, YEAR_S
from laneway.domain.job import NAME_BYTES
from laneway.domain.lane import check_job_type, check_lane_name
from laneway.domain.permissions import SCOPES, Scope, check_permissions
from laneway.domain.text import check_name, check_text
from laneway.errors import InvalidInput

Kind = Literal["person", "service"]
KINDS: Final = ("person", "service")
PRINCIPAL_BYTES: Final = 2 * NAME_BYTES
TOKEN_NAME_BYTES: Final = 256
MOST_LANES: Final = 100
MOST_JOB_TYPES: Final = 1000

TOKEN_LIFE_S: Final = 90 * DAY_S
LONGEST_LIFE_S: Final = 10 * YEAR_S

# Alphabets whose letters look alike.
_LOOKALIKES: Final = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC"})
# Laneway writes these into `created_by` and `approved_by` itself.
_TAKEN_PREFIX: Final = "schedule:"
_TAKEN_NAMES: Final = frozenset({"policy", "laneway"})
# Names that new principals may not have.
_RESERVED: Final = _TAKEN_NAMES | {"nobody", "anonymous", "system"}


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _listed(names: tuple[str, ...] | None) -> list[str] | None:
    return None if names is None else list(names)


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

    def to_dict(self) -> dict[str, object]:
        return {
            "id": str(self.id),
            "name": self.name,
            "kind": self.kind,
            "created_at": _iso(self.created_at),
            "created_by": self.created_by,
            "disabled_at": _iso(self.disabled_at),
        }


@dataclass(frozen=True, slots=True)
class Role:
    """A named set of permissions; a seeded one cannot be changed."""

    name: str
    permissions: tuple[str, ...]
    is_seeded: bool
    updated_at: datetime
    updated_by: str

    def to_dict(self) -> dict[str, object]:
        return {
            "name": self.name,
            "permissions": list(self.permissions),
            "is_seeded": self.is_seeded,
            "updated_at": _iso(self.updated_at),
            "updated_by": self.updated_by,
        }


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
    max_priority: int | None = None
    max_queued: int | None = None
    max_queued_bytes: int | None = None
    max_types: int | None = None

    @property
    def bounds(self) -> GrantBounds:
        return GrantBounds(
            self.max_priority, self.max_queued, self.max_queued_bytes, self.max_types
        )

    def to_dict(self) -> dict[str, object]:
        return {
            "id": str(self.id),
            "principal": self.principal,
            "role": self.role,
            "scope": self.scope,
            "workspace": self.workspace,
            "lanes": _listed(self.lanes),
            "granted_at": _iso(self.granted_at),
            "granted_by": self.granted_by,
            **asdict(self.bounds),
        }


@dataclass(frozen=True, slots=True)
class Token:
    """A token without its secret; `hint` is the beginning of the secret."""

    id: UUID
    principal: str
    name: str
    hint: str
    permissions: tuple[str, ...] | None
    lanes: tuple[str, ...] | None
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str | None
    last_used_at: datetime | None
    job_types: tuple[str, ...] | None = None

    def to_dict(self) -> dict[str, object]:
        return {
            "id": str(self.id),
            "principal": self.principal,
            "name": self.name,
            "hint": self.hint,
            "permissions": _listed(self.permissions),
            "lanes": _listed(self.lanes),
            "created_at": _iso(self.created_at),
            "created_by": self.created_by,
            "expires_at": _iso(self.expires_at),
            "revoked_at": _iso(self.revoked_at),
            "revoked_by": self.revoked_by,
            "last_used_at": _iso(self.last_used_at),
            "job_types": _listed(self.job_types),
        }


class NewToken(NamedTuple):
    """A token and its secret, which cannot be shown again."""

    secret: str
    token: Token


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
    chosen = check_permissions(each if isinstance(each, str) else repr(each) for each in given)
    if not chosen:
        raise InvalidInput("permissions", "must name at least one")
    return chosen


def check_lanes(given: object) -> tuple[str, ...] | None:
    """Names of lanes, each once, or None for any lane."""
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidInput("lanes", "must be a list of names")
    names = {check_lane_name(each, "lanes") for each in given}
    if not 1 <= len(names) <= MOST_LANES:
        raise InvalidInput("lanes", f"must be 1 to {MOST_LANES} names; leave it out for any lane")
    return tuple(sorted(names))


def check_job_types(given: object) -> tuple[str, ...] | None:
    """Names of job types, each once, or None for any."""
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidInput("job_types", "must be a list of names")
    names = {check_job_type(each, "job_types") for each in given}
    if not 1 <= len(names) <= MOST_JOB_TYPES:
        raise InvalidInput(
            "job_types", f"must be 1 to {MOST_JOB_TYPES} names; leave it out for any type"
        )
    return tuple(sorted(names))


def check_place(scope: object, workspace: object) -> tuple[Scope, str | None]:
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
