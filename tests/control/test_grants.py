"""Each database role can run its statements with exactly the rights of its list.

Everything happens in one transaction that is rolled back, the roles included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

import laneway.store
from laneway.domain.approval import analysis_of
from laneway.errors import InvalidInput
from laneway.store import (
    jobs,
    statement,
)
from laneway.store.function_rights import FUNCTIONS
from laneway.store.grants import expand, grants, privileges
from laneway.store.rights import OWNERS_STATEMENTS, OWNING_ROLES, ROLES, STATEMENTS
from tests.control.role_statements import (
    ROLE,
    ROLE_WORK,
    RoleSession,
    grant_text,
    prepare_client,
    run_client,
    run_others,
    run_own,
)

SQL_FILES = Path(laneway.store.__file__).parent / "sql"
# The audit is append-only for every role.
AUDIT_CHANGES = (
    "update laneway.audit set actor = 'other'",
    "delete from laneway.audit",
    "truncate laneway.audit",
)


@pytest.fixture
def session(dsn: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[RoleSession]:
    read = statement.sql
    with (
        psycopg.connect(dsn, autocommit=True, application_name="tests") as conn,
        conn.transaction(force_rollback=True),
    ):
        conn.execute(f"create role {ROLE} nologin".encode())
        conn.execute("revoke execute on all functions in schema laneway from public")
        # Every change is logged.
        conn.execute("insert into laneway.watches (seq, until) values (0, 'infinity')")
        session = RoleSession(conn)

        def remember(name: str) -> str:
            session.ran.add(name)
            return read(name)

        monkeypatch.setattr(statement, "sql", remember)
        yield session


def give(session: RoleSession, *roles: str) -> None:
    session.conn.execute(grants(roles, ROLE, "no_owner").encode())


def prepare_and_run(
    session: RoleSession,
    prepare: Callable[[RoleSession], Any],
    run: Callable[[RoleSession, Any], None],
) -> None:
    """Prepare as the owner, then run the statements as the role."""
    run_as_role(session, run, prepare(session))


def run_as_role(session: RoleSession, run: Callable[[RoleSession, Any], None], data: Any) -> None:
    session.ran.clear()
    session.conn.execute(f"set local role {ROLE}".encode())
    run(session, data)
    session.conn.execute("reset role")


def test_every_statement_declares_privileges_and_has_a_role() -> None:
    files = {str(path.relative_to(SQL_FILES))[:-4] for path in SQL_FILES.rglob("*.sql")}
    assert files == set(STATEMENTS)
    assert set(ROLE_WORK) == set(ROLES)
    assert {name for names in ROLES.values() for name in names} == files - OWNERS_STATEMENTS


@pytest.mark.parametrize("role", ROLES)
def test_role_runs_all_its_statements_with_its_grants(session: RoleSession, role: str) -> None:
    give(session, role)
    prepare_and_run(session, *ROLE_WORK[role])
    assert session.ran == set(ROLES[role])


@pytest.mark.parametrize("role", ROLES)
def test_no_grant_of_a_role_can_be_missed(session: RoleSession, role: str) -> None:
    """The server has the grants of other roles and of operator verbs: only the latter are tried."""
    give(session, role)
    prepare, run = ROLE_WORK[role]
    # Leases must not lapse before the last grant is tried.
    session.conn.execute("update laneway.worker_lanes set lease_seconds = 3600")
    data = prepare(session)
    if role == "server":
        run_as_role(session, run_others, data)
        run = run_own
    others = frozenset().union(*(privileges(other) for other in ROLES if other != "server"))
    session.unproven = set(privileges(role) - (others if role == "server" else frozenset()))
    with session.conn.transaction(force_rollback=True):
        run_as_role(session, run, data)
    # What is left is needed by calls outside of statements, if at all.
    rest, session.unproven = sorted(session.unproven), set()
    needless = [each for each in rest if not session.is_denied(each, lambda: run(session, data))]
    assert needless == [], "\n".join(map(str, needless))


@pytest.mark.parametrize("role", ROLES)
def test_role_holds_nothing_outside_its_list(session: RoleSession, role: str) -> None:
    session.conn.execute(f"grant delete on laneway.jobs to {ROLE}".encode())
    give(session, role)
    tables = session.conn.execute(
        "select table_name::text, lower(privilege_type) from information_schema.role_table_grants"
        " where grantee = %s",
        [ROLE],
    ).fetchall()
    routines = session.conn.execute(
        "select routine_name::text from information_schema.role_routine_grants where grantee = %s",
        [ROLE],
    ).fetchall()
    wanted = privileges(role)
    assert set(tables) == {(p.name, p.right) for p in wanted if p.kind == "table"}
    assert {row[0] for row in routines} == {p.name for p in wanted if p.kind == "function"}


@pytest.mark.parametrize(
    "role,forbidden",
    [
        ("worker", "delete from laneway.jobs"),
        ("worker", "insert into laneway.jobs (id, job_type, payload) values (null, null, null)"),
        ("worker", "delete from laneway.worker_lanes"),
        ("worker", "update laneway.outcome set status = 'completed'"),
        ("client", "delete from laneway.jobs"),
        ("client", "update laneway.control set paused = true"),
        ("reader", "select laneway.cancel(1, 'me', null)"),
        ("reader", "update laneway.lease set attempt = 9"),
        ("server", "update laneway.jobs set payload = '{}'"),
        *((role, change) for role in ROLES for change in AUDIT_CHANGES),
        ("server", "create table laneway.more ()"),
        ("server", "drop table laneway.logs"),
    ],
)
def test_role_lacks_privileges_it_does_not_need(
    session: RoleSession, role: str, forbidden: str
) -> None:
    give(session, role)
    session.conn.execute(f"set local role {ROLE}".encode())
    with pytest.raises(psycopg.errors.InsufficientPrivilege), session.conn.transaction():
        session.conn.execute(forbidden.encode())


def test_rights_of_reprioritize_are_enough_for_a_running_analysis(session: RoleSession) -> None:
    """Other operator verbs write leases too, so the loop above cannot detect it."""
    session.publish("costly", has_analysis=True)
    job_id = session.submit("costly")
    session.claim(analysis_of("costly"))
    session.conn.execute(f"grant usage on schema laneway to {ROLE}".encode())
    for privilege in expand(STATEMENTS["jobs/reprioritize_job"]):
        session.conn.execute(f"grant {grant_text(privilege)} to {ROLE}".encode())
    session.conn.execute(f"set local role {ROLE}".encode())
    assert session.run(jobs.reprioritize(job_id, 5)).found_in == "pending"


def test_two_roles_can_be_given_together(session: RoleSession) -> None:
    give(session, "worker", "client")
    prepare_and_run(session, prepare_client, run_client)


def test_owner_owns_everything_and_migrator_acts_as_owner(session: RoleSession) -> None:
    conn = session.conn
    conn.execute(grants(["owner"], ROLE, "no_owner").encode())
    owned = conn.execute(
        "select count(*) filter (where relowner <> 'laneway_test_role'::regrole), count(*)"
        " from pg_class where relnamespace = 'laneway'::regnamespace"
    ).fetchone()
    assert owned is not None
    assert owned[0] == 0 < owned[1]
    public = conn.execute(
        "select count(*) from pg_proc where pronamespace = 'laneway'::regnamespace"
        " and (proowner <> 'laneway_test_role'::regrole"
        "      or has_function_privilege('public', oid, 'execute'))"
    ).fetchone()
    assert public == (0,)
    conn.execute("create role laneway_test_migrator login")
    conn.execute(grants(["migrator"], "laneway_test_migrator", ROLE).encode())
    conn.execute("set local role laneway_test_migrator")
    conn.execute("set local role laneway_test_role")
    conn.execute("create table laneway.more ()")


def test_new_owner_does_not_wait_for_reader(session: RoleSession, dsn: str) -> None:
    """Submits would wait for it."""
    with psycopg.connect(dsn) as reader:
        reader.execute("select from laneway.jobs")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            session.conn.execute(grants(["owner"], ROLE, "no_owner").encode())


@pytest.mark.parametrize("name", ["", "x" * 64, "a\nb", "a\x00", "$owner$", "é" * 40])
def test_hostile_role_name_is_refused(name: str) -> None:
    for roles in (["worker"], ["owner"]):
        with pytest.raises(InvalidInput):
            grants(roles, name, "laneway_owner")


@pytest.mark.parametrize("name", ['a"; drop schema laneway; --', "a'b", "%I", "{to}", "SELECT"])
def test_odd_role_name_is_quoted(session: RoleSession, name: str) -> None:
    session.conn.execute(SQL("create role {} nologin").format(Identifier(name)))
    for roles in (["reader"], ["owner"]):
        session.conn.execute(grants(roles, name, "laneway_owner").encode())


def test_unknown_and_mixed_owning_roles_are_refused() -> None:
    for roles in (["admin"], [OWNING_ROLES[0], "worker"]):
        with pytest.raises(InvalidInput, match="role"):
            grants(roles, "x", "y")


def test_every_function_named_exists(session: RoleSession) -> None:
    found = session.conn.execute(
        "select proname::text from pg_proc where pronamespace = 'laneway'::regnamespace"
        " and prorettype <> 'trigger'::regtype"
    ).fetchall()
    assert {row[0] for row in found} == set(FUNCTIONS)
