"""Callers, requests and expected results, written independently of the code that decides.

Every principal has one grant. The near objects are those it may reach: jobs and schedules of the
workspace `ours` in the lane `interactive`, jobs submitted by itself. The far ones belong to the
workspace `theirs`, the lane `system` and a stranger, and bear MARK where no request names it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from laneway.domain.permissions import PERMISSIONS, SEEDED_ROLES
from laneway.operations.catalog import DECLARED
from laneway.operations.flows import FLOWS
from laneway.operations.operation import Operation
from laneway.operations.schedules import SCHEDULES

Side = Literal["near", "far"]
Kind = Literal[
    "open", "anyone", "global", "lanes", "lane", "submit", "job", "flow", "event",
    "new_schedule", "schedule", "run",
]  # fmt: skip
MARK: Final = "m4rk-of-the-stranger"
PLACES: Final[dict[Side, tuple[str, str, str]]] = {
    "near": ("ours", "interactive", "ingestion"),
    "far": ("theirs", "system", "restore"),
}


@dataclass(frozen=True)
class Person:
    """A principal with one grant, and the restriction of its token."""

    name: str
    permissions: frozenset[str]
    scope: Literal["own", "workspace", "all"] = "all"
    lanes: frozenset[str] | None = None
    role: str | None = None
    token: frozenset[str] | None = None

    @property
    def is_narrow(self) -> bool:
        return self.scope != "all" or self.lanes is not None or not self.permissions

    def has(self, permission: str) -> bool:
        return permission in self.permissions and (self.token is None or permission in self.token)

    def has_everywhere(self, permission: str) -> bool:
        return self.has(permission) and self.scope == "all" and self.lanes is None

    def has_lane(self, permission: str, side: Side) -> bool:
        return self.has(permission) and self.scope == "all" and self._serves(side)

    def covers(self, permission: str, side: Side, *, owned: bool) -> bool:
        """Whether it has the permission for a job, or for a schedule, which has no owner."""
        in_scope = {"own": owned and side == "near", "workspace": side == "near", "all": True}
        return self.has(permission) and in_scope[self.scope] and self._serves(side)

    def _serves(self, side: Side) -> bool:
        return self.lanes is None or PLACES[side][1] in self.lanes


def _of(role: str, name: str | None = None, **more: Any) -> Person:
    return Person(name or role, frozenset(SEEDED_ROLES[role]), role=role, **more)


_LANE: Final = frozenset({"interactive"})
PEOPLE: Final = (
    Person("without-role", frozenset()),
    _of("platform_admin"),
    _of("operator"),
    _of("approver"),
    _of("submitter", scope="own"),
    _of("viewer"),
    _of("remote_worker", lanes=_LANE),
    _of("platform_admin", "admin of ours", scope="workspace"),
    _of("platform_admin", "admin of a lane", lanes=_LANE),
    _of("viewer", "viewer of ours", scope="workspace"),
    _of("platform_admin", "admin with a narrow token", token=frozenset({"jobs:read"})),
)


@dataclass(frozen=True)
class Entry:
    """A route: its permission, its kind of object, and its request."""

    kind: Kind
    permission: str | None = None
    body: Callable[[str, str, str, int], Any] | dict[str, Any] | None = None
    # The object in the path, created for every request.
    make: str | None = None
    query: str = ""
    # Endless: only the beginning is read.
    is_stream: bool = False

    @property
    def sides(self) -> tuple[Side, ...]:
        """The side of the object; requests about everything, or nothing, are the same on both."""
        is_placed = self.kind in (
            "lane",
            "submit",
            "job",
            "flow",
            "event",
            "new_schedule",
            "schedule",
        )
        return ("near", "far") if is_placed else ("far",)

    def answer(self, who: Person, side: Side) -> Literal["through", 403, 404]:
        """The expected result of this principal's request for that object."""
        wanted = self.permission
        if wanted is not None and not who.has(wanted):
            return 403
        if self.kind == "run":
            return "through" if who.has_everywhere("jobs:read") else 404
        if wanted is None:
            return "through"
        if self.kind == "global":
            return "through" if who.has_everywhere(wanted) else 403
        if self.kind == "lanes":
            return "through" if who.has_lane(wanted, "near") else 403
        if self.kind == "lane":
            if not who.has_lane(wanted, "near"):
                return 403
            hidden: Literal[403, 404] = 403 if who.has_lane("workers:view", side) else 404
            return "through" if who.has_lane(wanted, side) else hidden
        if self.kind == "submit":
            # A caller owns the jobs that it submits.
            is_own = who.scope == "own" or who.covers(wanted, side, owned=False)
            return "through" if is_own else 403
        if self.kind == "new_schedule":
            return "through" if who.covers(wanted, side, owned=False) else 403
        if self.kind == "event":
            # An event has no owner: a grant for own jobs covers none.
            covers = who.covers(wanted, side, owned=False) and who.lanes is None
            return "through" if covers else 403
        if self.kind == "flow":
            # Its jobs may be in any lane.
            sees, may = (
                who.lanes is None and who.covers(each, side, owned=True)
                for each in ("jobs:read", wanted)
            )
            return "through" if sees and may else 403 if sees else 404
        if self.kind in ("job", "schedule"):
            owned = self.kind == "job"
            view = "jobs:read" if owned else "schedules:view"
            if who.covers(wanted, side, owned=owned) and (
                owned is False or who.covers(view, side, owned=owned) or wanted in _WORKERS
            ):
                return "through"
            return 403 if who.covers(view, side, owned=owned) else 404
        return "through"


_WORKERS: Final = ("workers:manage",)


def _place(workspace: str, lane: str, job_type: str, number: int) -> dict[str, Any]:
    return {"workspace": workspace, "job_type": job_type}


def _new_schedule(workspace: str, lane: str, job_type: str, number: int) -> dict[str, Any]:
    named = {"name": f"new-{number}", "cron": "0 3 * * *"}
    return named | _place(workspace, lane, job_type, number)


def _named(**more: Any) -> Callable[[str, str, str, int], Any]:
    return lambda workspace, lane, job_type, number: {"name": f"new-{number}", **more}


_JOB: Final = "/jobs/{job_id}"
_FLOW: Final = "/flows/{flow_id}"
_SCHEDULE: Final = "/admin/schedules/{name}"
_ROLE: Final = ["jobs:read"]

# Bodies of declared operations.
_BODIES: Final[dict[str, Any]] = {
    "create_lane": _named(),
    "tune_lane": {"poll_interval_ms": 4000},
    "take_type": {"job_type": "taken"},
    "load_lanes": {"lanes": {"interactive": {}}, "dry_run": True},
    "create_principal": _named(kind="service"),
    "switch_principal": {"name": "somebody", "disabled": True},
    "create_role": _named(permissions=_ROLE),
    "change_role": {"permissions": _ROLE},
    "grant_role": {"principal": "somebody", "role": "viewer", "scope": "all"},
    "create_webhook": _named(url="https://example.com/"),
    "change_webhook": {"timeout_s": 5},
    "create_token": {"principal": "platform_admin", "name": "x", "permissions": ["jobs:read"]},
    "thaw_lanes": lambda workspace, lane, *_: {"lanes": [lane]},
}
# Their objects, if not a lane.
_MAKES: Final[dict[str, str]] = {
    "get_limit": "limit", "delete_limit": "limit", "list_limit_changes": "limit",
    "roll_back_limit": "limit", "change_role": "role", "delete_role": "role",
    "revoke_grant": "grant", "revoke_token": "token", "get_webhook": "webhook",
    "change_webhook": "webhook", "delete_webhook": "webhook", "test_webhook": "webhook",
    "rotate_webhook_secret": "webhook",
}  # fmt: skip
_KINDS: Final[dict[str, Kind]] = {
    "lanes": "lanes", "lane": "lane", "named lanes": "lane", "all lanes": "global",
    "everywhere": "global",
}  # fmt: skip


def _declared(operation: Operation[Any, Any]) -> Entry:
    """The row of an operation; docs/howto/access.md has the same table."""
    kind = _KINDS[operation.scope]
    # An operation on all lanes requires more than one lane in scope.
    make = {"lane": "lane", "all lanes": "own_lane", "everywhere": _MAKES.get(operation.name)}.get(
        operation.scope if operation.inputs_of("path") else ""
    )
    body = _BODIES.get(operation.name)
    query = "?job_type=ingestion" if operation.name == "find_lane" else ""
    return Entry(kind, operation.permission, body, make, query)


ENTRIES: Final[dict[tuple[str, str], Entry]] = {
    ("GET", "/healthz"): Entry("open"),
    ("GET", "/readyz"): Entry("open"),
    ("GET", "/"): Entry("open"),
    ("HEAD", "/"): Entry("open"),
    ("GET", "/ui"): Entry("open"),
    ("GET", "/ui/{path}"): Entry("open"),
    ("HEAD", "/ui/{path}"): Entry("open"),
    ("GET", "/metrics"): Entry("global", "metrics:read"),
    ("GET", "/login"): Entry("open"),
    ("POST", "/login"): Entry("open"),
    ("POST", "/logout"): Entry("anyone"),
    ("GET", "/me"): Entry("anyone"),
    ("GET", "/docs"): Entry("anyone"),
    ("GET", "/openapi.json"): Entry("anyone"),
    ("POST", "/jobs"): Entry("submit", "jobs:submit", _place),
    ("POST", "/jobs/batch"): Entry(
        "submit", "jobs:submit", lambda *place: {"jobs": [_place(*place)]}
    ),
    ("GET", "/jobs"): Entry("anyone", "jobs:read"),
    ("GET", "/jobs/counts"): Entry("anyone", "jobs:read"),
    ("GET", "/jobs/ids"): Entry("anyone", "jobs:read", query="?prefix=0190"),
    ("GET", _JOB): Entry("job", "jobs:read", make="job"),
    ("DELETE", _JOB): Entry("job", "jobs:cancel", make="job"),
    ("GET", f"{_JOB}/explain"): Entry("job", "jobs:read", make="job"),
    ("GET", f"{_JOB}/attempts"): Entry("job", "jobs:read", make="job"),
    ("GET", f"{_JOB}/stream"): Entry("job", "jobs:read", make="job", is_stream=True),
    ("GET", "/events"): Entry("anyone", "jobs:read", is_stream=True),
    ("POST", f"{_JOB}/cancel"): Entry("job", "jobs:cancel", make="job"),
    ("POST", f"{_JOB}/approve"): Entry("job", "jobs:approve", make="job"),
    ("POST", f"{_JOB}/reject"): Entry("job", "jobs:approve", {"reason": "no"}, make="job"),
    ("POST", f"{_JOB}/retry"): Entry("job", "jobs:cancel", make="job"),
    ("POST", f"{_JOB}/run_now"): Entry("job", "jobs:cancel", make="job"),
    ("POST", "/flows"): Entry(
        "submit",
        "jobs:submit",
        lambda workspace, lane, job_type, number: {
            "name": "f",
            "workspace": workspace,
            "jobs": [{"job_type": job_type}],
        },
    ),
    ("GET", "/flows"): Entry("anyone", "jobs:read"),
    ("GET", _FLOW): Entry("flow", "jobs:read", make="flow"),
    ("GET", f"{_FLOW}/stream"): Entry("flow", "jobs:read", make="flow", is_stream=True),
    ("POST", f"{_FLOW}/cancel"): Entry("flow", "jobs:cancel", make="flow"),
    ("POST", f"{_FLOW}/retry"): Entry("flow", "jobs:cancel", make="flow"),
    ("POST", "/events"): Entry(
        "event",
        "events:send",
        lambda workspace, *_: {"name": "reviewed", "workspace": workspace},
    ),
    ("POST", "/jobs/bulk"): Entry(
        "anyone", "jobs:cancel", {"verb": "cancel", "all": True, "dry_run": True}
    ),
    ("GET", "/jobs/bulk/{run_id}"): Entry("run", make="run"),
    **{
        (each.method, each.path): _declared(each)
        for each in DECLARED.values()
        # Schedules and flows are listed separately: they belong to a workspace.
        if each not in SCHEDULES and each not in FLOWS and each.name != "send_event"
    },
    ("GET", "/admin/workers/status"): Entry("lanes", "workers:view"),
    ("DELETE", "/admin/workers/publishers/{application}"): Entry(
        "global", "workers:manage", make="publisher"
    ),
    ("GET", "/admin/database"): Entry("global", "workers:view"),
    ("POST", "/admin/workers/{worker_id}/drain"): Entry("lane", "workers:manage", make="worker"),
    ("POST", "/admin/workers/{worker_id}/resume"): Entry("lane", "workers:manage", make="worker"),
    ("POST", "/admin/workers/freeze"): Entry(
        "lane", "workers:manage", lambda workspace, lane, *_: {"lanes": [lane]}
    ),
    ("POST", "/admin/workers/jobs/{job_id}/cancel"): Entry("job", "workers:manage", make="job"),
    ("PATCH", "/admin/workers/jobs/{job_id}/priority"): Entry(
        "job", "workers:manage", {"priority": 1}, make="job"
    ),
    ("PUT", "/admin/limits/{name}"): Entry("global", "workers:manage", {}, make="limit"),
    ("GET", "/admin/changes"): Entry("global", "workers:manage"),
    ("GET", "/admin/schedules"): Entry("anyone", "schedules:view"),
    ("POST", "/admin/schedules"): Entry("new_schedule", "schedules:manage", _new_schedule),
    ("GET", _SCHEDULE): Entry("schedule", "schedules:view", make="schedule"),
    ("PATCH", _SCHEDULE): Entry(
        "schedule", "schedules:manage", {"enabled": False}, make="schedule"
    ),
    ("DELETE", _SCHEDULE): Entry("schedule", "schedules:manage", make="schedule"),
    ("POST", f"{_SCHEDULE}/run"): Entry("schedule", "schedules:manage", make="schedule"),
    ("GET", f"{_SCHEDULE}/slots"): Entry("schedule", "schedules:view", make="schedule"),
    ("GET", f"{_SCHEDULE}/history"): Entry("global", "schedules:view", make="schedule"),
    ("POST", f"{_SCHEDULE}/rollback"): Entry("global", "schedules:manage", make="schedule"),
}

assert {entry.permission for entry in ENTRIES.values()} - {None} <= set(PERMISSIONS)
