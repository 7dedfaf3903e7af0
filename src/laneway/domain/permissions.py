"""Permissions of principals, and the jobs they cover: denied by default, grants only add."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal
from uuid import UUID

from laneway.domain.bounds import (
    BOUNDED,
    NO_BOUNDS,
    UNBOUND,
    Bounds,
    GrantBounds,
    narrowest,
    widest,
)
from laneway.domain.token import TokenExpiry
from laneway.errors import InvalidInput

PERMISSIONS: Final = (
    "jobs:submit", "jobs:read", "jobs:cancel", "jobs:approve", "jobs:debug",
    "workers:view", "workers:manage", "workers:claim", "workers:declare",
    "schedules:view", "schedules:manage", "metrics:read", "events:send", "access:manage",
    "audit:read",
)  # fmt: skip
SEEDED_ROLES: Final[dict[str, tuple[str, ...]]] = {
    "platform_admin": PERMISSIONS,
    "operator": tuple(
        name
        for name in PERMISSIONS
        if name.startswith(("jobs:", "workers:", "schedules:")) or name == "metrics:read"
    ),
    "approver": ("jobs:read", "jobs:approve"),
    "submitter": ("jobs:submit", "jobs:read", "jobs:cancel"),
    "viewer": ("jobs:read", "workers:view"),
    "remote_worker": ("workers:claim",),
}
# Permissions by which rows of jobs are read or written.
_ON_JOBS: Final = ("jobs:", "workers:", "schedules:", "events:")
CLAIM: Final = "workers:claim"
DECLARE: Final = "workers:declare"
# Their objects have no submitter, so that grants for own jobs cover none of them.
WITHOUT_OWNER: Final = frozenset({
    "schedules:view", "schedules:manage", "metrics:read", "events:send", "access:manage",
    "audit:read",
})  # fmt: skip
SCOPES: Final = ("own", "workspace", "all")
Scope = Literal["own", "workspace", "all"]


def check_permissions(given: Iterable[str]) -> tuple[str, ...]:
    """The permissions in their order, each once; InvalidInput names an unknown one."""
    chosen = set(given)
    for name in chosen:
        if name not in PERMISSIONS:
            raise InvalidInput("permissions", f"{name!r} is not one of {', '.join(PERMISSIONS)}")
    return tuple(name for name in PERMISSIONS if name in chosen)


@dataclass(frozen=True, slots=True)
class Grant:
    """The permissions that one role gives a principal, and their scope."""

    permissions: frozenset[str]
    scope: Scope
    workspace: str | None = None
    lanes: frozenset[str] | None = None
    bounds: GrantBounds = NO_BOUNDS


@dataclass(frozen=True, slots=True)
class Term:
    """The jobs that match all values that are not None."""

    owner: str | None = None
    workspace: str | None = None
    lanes: frozenset[str] | None = None
    # Bounds on these jobs; they do not select jobs.
    bounds: Bounds = field(default=UNBOUND, compare=False)

    def holds(self, *, owner: str | None, workspace: str | None, lane: str | None) -> bool:
        return (
            (self.owner is None or self.owner == owner)
            and (self.workspace is None or self.workspace == workspace)
            and (self.lanes is None or lane in self.lanes)
        )

    def __and__(self, other: Term) -> Term | None:
        """The jobs that match both, with the bounds of the first; None: there are none."""
        if None not in (self.owner, other.owner) and self.owner != other.owner:
            return None
        if None not in (self.workspace, other.workspace) and self.workspace != other.workspace:
            return None
        lanes = self.lanes if other.lanes is None else other.lanes
        if self.lanes is not None and other.lanes is not None:
            lanes = self.lanes & other.lanes
        if lanes is not None and not lanes:
            return None
        owner, workspace = self.owner or other.owner, self.workspace or other.workspace
        return Term(owner, workspace, lanes, self.bounds)


@dataclass(frozen=True, slots=True)
class Reach:
    """The jobs that a permission covers: those that match any of the terms."""

    terms: tuple[Term, ...]

    @property
    def is_empty(self) -> bool:
        return not self.terms

    @property
    def is_whole(self) -> bool:
        return Term() in self.terms

    @property
    def lanes(self) -> frozenset[str] | None:
        """The lanes it covers as a whole, for every owner and workspace; None: every lane."""
        names: frozenset[str] = frozenset()
        for term in self.terms:
            if term.owner is not None or term.workspace is not None:
                continue
            if term.lanes is None:
                return None
            names |= term.lanes
        return names

    def __and__(self, other: Reach) -> Reach:
        """The jobs that both cover, with the bounds of the first."""
        terms = (mine & theirs for mine in self.terms for theirs in other.terms)
        return Reach(tuple(dict.fromkeys(term for term in terms if term is not None)))

    def to_list(self) -> list[dict[str, object]]:
        """The terms as JSON values."""
        return [
            {
                "owner": term.owner,
                "workspace": term.workspace,
                "lanes": None if term.lanes is None else sorted(term.lanes),
            }
            for term in self.terms
        ]

    def covers(self, *, owner: str | None, workspace: str | None, lane: str | None) -> bool:
        return any(t.holds(owner=owner, workspace=workspace, lane=lane) for t in self.terms)

    def bounds(self, *, owner: str | None, workspace: str | None, lane: str | None) -> Bounds:
        """The bounds on a job that is covered."""
        return widest(
            t.bounds for t in self.terms if t.holds(owner=owner, workspace=workspace, lane=lane)
        )

    @property
    def least_bounds(self) -> Bounds:
        """The bounds that hold for every job that is covered."""
        return narrowest(term.bounds for term in self.terms)


@dataclass(frozen=True, slots=True)
class Access:
    """An authenticated principal with its grants, narrowed by its token."""

    principal_id: UUID
    name: str
    kind: Literal["person", "service"]
    grants: tuple[Grant, ...]
    token_permissions: frozenset[str] | None = None
    token_lanes: frozenset[str] | None = None
    csrf: str | None = None
    # The job types that it may claim; other permissions ignore them.
    token_job_types: frozenset[str] | None = None
    # None: it never expires.
    token_expiry: TokenExpiry | None = field(default=None, compare=False)
    # The workspaces of all grants that concern jobs; None: every workspace.
    workspaces: frozenset[str] | None = field(init=False, repr=False, compare=False)
    # A cache: each request asks several times.
    _reached: dict[str, Reach] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        named = {
            grant.workspace
            for grant in self.grants
            if any(permission.startswith(_ON_JOBS) for permission in self._given(grant))
        }
        workspaces = None if None in named else frozenset(filter(None, named))
        object.__setattr__(self, "workspaces", workspaces)

    def holds(self, permission: str) -> bool:
        """Whether a grant gives the permission, even if it covers nothing."""
        return any(permission in self._given(grant) for grant in self.grants)

    def allows(self, permission: str) -> bool:
        """Whether this permission covers anything."""
        return not self.reach(permission).is_empty

    def allows_everywhere(self, permission: str) -> bool:
        """Whether it covers everything, including objects without a workspace or a lane."""
        is_narrowed = permission == CLAIM and self.token_job_types is not None
        return self.reach(permission).is_whole and not is_narrowed

    def reach(self, permission: str) -> Reach:
        """The jobs that the permission covers."""
        found = self._reached.get(permission)
        if found is None:
            found = self._reached[permission] = self._reach(permission)
        return found

    def _reach(self, permission: str) -> Reach:
        if self.token_permissions is not None and permission not in self.token_permissions:
            return Reach(())
        is_owned = permission not in WITHOUT_OWNER
        terms = (
            self._term(grant)
            for grant in self.grants
            if permission in grant.permissions and (is_owned or grant.scope != "own")
        )
        return Reach(tuple(term for term in terms if term.lanes is None or term.lanes))

    def _term(self, grant: Grant) -> Term:
        lanes = grant.lanes
        if self.token_lanes is not None:
            lanes = self.token_lanes if lanes is None else lanes & self.token_lanes
        owner = self.name if grant.scope == "own" else None
        return Term(owner, grant.workspace, lanes, grant.bounds.in_force(grant.permissions))

    def _given(self, grant: Grant) -> frozenset[str]:
        if self.token_permissions is None:
            return grant.permissions
        return grant.permissions & self.token_permissions


def excess(giver: Access, taker: Access) -> str | None:
    """A permission that the taker would have beyond the giver's; None: there is none.

    Callers cannot grant permissions that they do not hold.
    """
    for permission in PERMISSIONS:
        own = giver.reach(permission).terms
        for term in taker.reach(permission).terms:
            if not any(_includes(wide, term, permission) for wide in own):
                return permission
    return CLAIM if taker.allows(CLAIM) and not _claims_within(giver, taker) else None


def _claims_within(giver: Access, taker: Access) -> bool:
    own, given = giver.token_job_types, taker.token_job_types
    return own is None or (given is not None and given <= own)


def _includes(wide: Term, narrow: Term, permission: str) -> bool:
    """Whether `wide` covers every job of `narrow` and allows as much."""
    return (
        (wide.owner is None or wide.owner == narrow.owner)
        and (wide.workspace is None or wide.workspace == narrow.workspace)
        and (wide.lanes is None or (narrow.lanes is not None and narrow.lanes <= wide.lanes))
        and (permission not in BOUNDED or wide.bounds.allows(narrow.bounds))
    )
