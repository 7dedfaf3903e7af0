"""Which privileges each database role needs: exactly those of the statements it runs.

A statement's line says what it touches itself; `execute on f` brings along what the function f
touches, because functions run with the rights of their caller. Tests run every role's statements
with these grants and with none of them missing one at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from psycopg.sql import SQL, Composable, Identifier, Literal

from laneway.domain.text import check_text
from laneway.errors import InvalidInput

SEQUENCES: Final = frozenset({"jobs_seq_seq"})
NAME_BYTES: Final = 63

_READ_JOB: Final = ("select on jobs_as_text", "execute on lane_of")
_LANE_CHANGE: Final = ("select update on worker_lanes", "select update on control")

FUNCTIONS: Final[dict[str, tuple[str, ...]]] = {
    "lane_of": ("select on worker_lanes",),
    "adopt_type": _LANE_CHANGE,
    "submit": (
        "select on job_types", "usage on jobs_seq_seq", "select insert on job_keys",
        "select insert on jobs", "insert on ready", "insert on delayed", "select on jobs_view",
    ),
    "cancel": (
        "select delete on ready", "select delete on delayed", "select insert on outcome",
        "select on jobs", "select delete on job_keys", "select update on lease",
    ),
    "reprioritize": (
        "select update on ready", "select update on delayed", "select on lease",
        "select on outcome", "select on jobs",
    ),
    "retry": (
        "select update delete on outcome", "select on jobs_view", "select on jobs",
        "insert on job_keys", "insert on attempts", "insert on ready",
    ),
    "claim": (
        "select on control", "select update on worker_lanes", "select insert update on slot_usage",
        "select update delete on ready", "select on jobs", "select on progress", "insert on lease",
    ),
    "retry_delay": ("select on job_types",),
    "settle": (
        "select delete on lease", "select insert on outcome", "select insert on attempts",
        "insert on ready", "insert on delayed", "select delete on job_keys", "select on jobs",
        "select update on slot_usage", "execute on retry_delay",
    ),
    "heartbeat": ("select update on lease",),
    "report": (
        "select update on lease", "select insert update on progress", "insert on logs",
    ),
    "peek": (
        "select update delete on delayed", "select insert on ready", "select on control",
    ),
    "measure": (
        "select on worker_lanes", "select on slot_usage", "select on ready", "execute on lane_of",
    ),
    "lead": ("select insert update on leader",),
    "overdue": (
        "select on lease", "select on workers", "select on job_types", "select on worker_lanes",
    ),
    "watch": (
        "execute on lead", "execute on overdue", "select update on lease", "execute on settle",
    ),
    "bury": ("select update on lease", "execute on settle", "select update on workers"),
}  # fmt: skip

STATEMENTS: Final[dict[str, tuple[str, ...]]] = {
    "control/pause_claims": ("update on control",),
    "control/read_gate": ("select on control",),
    "control/wake_workers": (),
    "health/count_lapsed": ("select on lease",),
    "health/find_oldest_snapshot": (),
    "health/read_server": (),
    "job_types/publish_types": ("select insert update on job_types",),
    "job_types/read_types": ("select on job_types",),
    "jobs/cancel_job": ("select on jobs", "execute on cancel"),
    "jobs/delete_job": (
        "select delete on outcome", "select delete on attempts", "select delete on progress",
        "select delete on logs", "select delete on jobs",
    ),
    "jobs/explain_job": (
        "select on jobs", "select on control", "select on ready", "select on delayed",
        "select on lease", "select on job_types", "select on worker_lanes", "select on workers",
        "select on slot_usage", "execute on lane_of",
    ),
    "jobs/find_keys": ("select on job_keys", "select on jobs_view"),
    "jobs/get_attempts": (
        "select on jobs", "select on attempts", "select on outcome", "select on lease",
        "select on workers", "select on logs",
    ),
    "jobs/get_job": _READ_JOB,
    "jobs/insert_batch": ("insert on jobs", "insert on ready", "insert on delayed"),
    "jobs/list_all": _READ_JOB,
    "jobs/list_ended": (*_READ_JOB, "select on outcome"),
    "jobs/list_running": (*_READ_JOB, "select on lease"),
    "jobs/list_waiting": (*_READ_JOB, "select on ready", "select on delayed"),
    "jobs/open_batch": ("usage on jobs_seq_seq", "select on job_types"),
    "jobs/reprioritize_job": ("select on jobs", "execute on reprioritize"),
    "jobs/reserve_keys": ("select insert on job_keys",),
    "jobs/retry_job": ("select on jobs", "execute on retry"),
    "jobs/submit_job": ("execute on submit",),
    "jobs/wait_job": ("select on jobs", "select on outcome", "select on lease"),
    "lanes/active_jobs": (
        "select on lease", "select on jobs", "select on workers", "select on progress",
    ),
    "lanes/adopt_type": ("execute on adopt_type",),
    "lanes/create_lane": ("select insert on worker_lanes", "select update on control"),
    "lanes/measure_lanes": ("execute on measure",),
    "lanes/move_type": _LANE_CHANGE,
    "lanes/peek_lanes": ("execute on peek",),
    "lanes/read_lanes": ("select on control", "select on worker_lanes"),
    "lanes/tune_lane": _LANE_CHANGE,
    "leases/bury_worker": ("execute on bury",),
    "leases/claim_jobs": ("execute on claim",),
    "leases/reclaim_leases": ("execute on watch",),
    "leases/renew_leases": ("execute on heartbeat",),
    "leases/report_progress": ("execute on report",),
    "leases/resign_leader": ("select update on leader",),
    "leases/settle_jobs": ("execute on settle",),
    "workers/list_workers": ("select on workers", "select on slot_usage", "select on leader"),
    "workers/register_worker": ("select insert update on workers",),
    "workers/stop_worker": ("select delete on slot_usage", "select update on workers"),
    "workers/sweep_workers": (
        "select delete on slot_usage", "select delete on workers", "select on lease",
    ),
    "workers/touch_worker": ("select update on workers",),
}  # fmt: skip

_READER: Final = (
    "control/read_gate", "health/count_lapsed", "job_types/read_types", "jobs/explain_job",
    "jobs/get_attempts", "jobs/get_job", "jobs/list_all", "jobs/list_ended", "jobs/list_running",
    "jobs/list_waiting", "jobs/wait_job", "lanes/active_jobs", "lanes/measure_lanes",
    "lanes/read_lanes", "workers/list_workers",
)  # fmt: skip
_CLIENT: Final = (
    "control/wake_workers", "job_types/read_types", "jobs/cancel_job", "jobs/find_keys",
    "jobs/get_attempts", "jobs/get_job", "jobs/insert_batch", "jobs/open_batch",
    "jobs/reserve_keys", "jobs/submit_job", "jobs/wait_job",
)  # fmt: skip
_WORKER: Final = (
    "control/wake_workers", "job_types/publish_types", "lanes/adopt_type", "lanes/create_lane",
    "lanes/peek_lanes", "lanes/read_lanes", "leases/bury_worker", "leases/claim_jobs",
    "leases/reclaim_leases", "leases/renew_leases", "leases/report_progress",
    "leases/resign_leader", "leases/settle_jobs", "workers/register_worker",
    "workers/stop_worker", "workers/sweep_workers", "workers/touch_worker",
)  # fmt: skip

# What each role runs. The server, and whoever operates by the command line, may do everything
# that statements do; neither may change the schema.
ROLES: Final[dict[str, tuple[str, ...]]] = {
    "server": tuple(STATEMENTS),
    "worker": _WORKER,
    "client": _CLIENT,
    "reader": _READER,
}
# Every process reads which migrations are applied before it starts; whoever may list jobs may
# also ask the view that is open to people's own SQL.
_EVERYONE: Final = ("select on migrations",)
_PUBLIC_VIEW: Final = ("select on jobs_view",)
OWNING_ROLES: Final = ("owner", "migrator")
ALL_ROLES: Final = (*OWNING_ROLES, *ROLES)


class Privilege(NamedTuple):
    """One right on one object of the schema laneway."""

    kind: str
    name: str
    right: str


def privileges(role: str) -> frozenset[Privilege]:
    """Everything a role holds besides the use of the schema."""
    lines = [line for name in ROLES[role] for line in STATEMENTS[name]]
    lines += [*_EVERYONE, *(_PUBLIC_VIEW if "jobs/list_all" in ROLES[role] else ())]
    return frozenset(_expand(lines))


def _expand(lines: Iterable[str]) -> Iterable[Privilege]:
    for line in lines:
        rights, _, name = line.partition(" on ")
        if rights == "execute":
            yield Privilege("function", name, "execute")
            yield from _expand(FUNCTIONS[name])
        else:
            kind = "sequence" if name in SEQUENCES else "table"
            yield from (Privilege(kind, name, right) for right in rights.split())


def grants(roles: Sequence[str], to: str, owner: str) -> str:
    """SQL that gives a database role what the named Laneway roles need, and nothing else."""
    for role in roles:
        if role not in ALL_ROLES:
            raise InvalidInput("role", f"must be one of {', '.join(ALL_ROLES)}, not {role!r}")
        if role in OWNING_ROLES and len(roles) > 1:
            raise InvalidInput("role", f"{role} stands alone: give it a database role of its own")
    for field, name in (("to", to), ("owner", owner)):
        check_text(name, field, max_bytes=NAME_BYTES)
        # The name of the role stands inside a dollar-quoted block and a comment ends at a line.
        if not name.isprintable() or "$" in name:
            raise InvalidInput(field, "must be printable text without '$'")
    lines = [f"-- {', '.join(roles)}: run it in Laneway's database as a superuser or its owner."]
    if "owner" in roles:
        lines += _owner(to)
    if "migrator" in roles:
        lines += _migrator(to, owner)
    wanted = {p for role in roles if role in ROLES for p in privileges(role)}
    if wanted:
        lines += _render(wanted, to)
    return "\n".join(lines) + "\n"


def _say(text: SQL, **names: Composable) -> str:
    return text.format(**names).as_string(None)


_TAKE_OVER: Final = SQL("""\
-- Owns the schema and everything in it. Give it no login; the migrator acts as it.
do $owner$
declare
    thing text;
begin
    execute format('grant create on database %I to %I', current_database(), {name});
    for thing in select format('table laneway.%I', relname) from pg_class
                  where relnamespace = 'laneway'::regnamespace and relkind in ('r', 'v')
                 union all
                 select format('function %s', oid::regprocedure) from pg_proc
                  where pronamespace = 'laneway'::regnamespace loop
        execute format('alter %s owner to %I', thing, {name});
    end loop;
end $owner$;
alter schema laneway owner to {owner};
-- Functions are for those they are granted to, those of later migrations too.
revoke execute on all functions in schema laneway from public;
alter default privileges for role {owner} revoke execute on functions from public;""")


def _owner(to: str) -> list[str]:
    return [_say(_TAKE_OVER, name=Literal(to), owner=Identifier(to))]


def _migrator(to: str, owner: str) -> list[str]:
    names = {"to": Identifier(to), "owner": Identifier(owner)}
    return [
        "-- Logs in and runs `laneway db migrate`; what it creates belongs to the owner.",
        _say(SQL("grant {owner} to {to};"), **names),
        _say(SQL("alter role {to} set role to {owner};"), **names),
    ]


def _render(wanted: set[Privilege], to: str) -> list[str]:
    grantee = Identifier(to)
    lines = ["-- Exactly what its statements need; rights of an earlier version go first."]
    lines += [
        _say(SQL("revoke all on all {kind} in schema laneway from {to};"), kind=kind, to=grantee)
        for kind in (SQL("tables"), SQL("sequences"), SQL("functions"))
    ]
    lines.append(_say(SQL("grant usage on schema laneway to {to};"), to=grantee))
    order = {"table": 0, "sequence": 1, "function": 2}
    objects = sorted({(p.kind, p.name) for p in wanted}, key=lambda o: (order[o[0]], o[1]))
    for kind, name in objects:
        rights = sorted(p.right for p in wanted if (p.kind, p.name) == (kind, name))
        target = f"laneway.{name}" if kind == "table" else f"{kind} laneway.{name}"
        lines.append(f"grant {', '.join(rights)} on {target} to {grantee.as_string(None)};")
    return lines
