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
from laneway.store import jobs, statement
from laneway.store.function_rights import FUNCTIONS
from laneway.store.grants import expand, grants, privileges
from laneway.store.rights import OWNERS_STATEMENTS, OWNING_ROLES, ROLES, STATEMENTS
from tests.control.client_statements import prepare_client, run_client
from tests.control.role_factory import ROLE, RoleFactory, grant_text
from tests.control.role_statements import ROLE_WORK
from tests.control.server_statements import run_others, run_own

SQL_FILES = Path(laneway.store.__file__).parent / "sql"
# The audit is append-only for every role.
AUDIT_CHANGES = (
    "update laneway.audit set actor = 'other'",
    "delete from laneway.audit",
    "truncate laneway.audit",
)


@pytest.fixture
def factory(dsn: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[RoleFactory]:
    read = statement.sql
    with (
        psycopg.connect(dsn, autocommit=True, application_name="tests") as conn,
        conn.transaction(force_rollback=True),
    ):
        conn.execute(f"create role {ROLE} nologin".encode())
        conn.execute("revoke execute on all functions in schema laneway from public")
        # Every change is logged.
        conn.execute("insert into laneway.watches (seq, until) values (0, 'infinity')")
        factory = RoleFactory(conn)

        def remember(name: str) -> str:
            factory.ran.add(name)
            return read(name)

        monkeypatch.setattr(statement, "sql", remember)
        yield factory


def give(factory: RoleFactory, *roles: str) -> None:
    factory.conn.execute(grants(roles, ROLE, "no_owner").encode())


def prepare_and_run(
    factory: RoleFactory,
    prepare: Callable[[RoleFactory], Any],
    run: Callable[[RoleFactory, Any], None],
) -> None:
    """Prepare as the owner, then run the statements as the role."""
    run_as_role(factory, run, prepare(factory))


def run_as_role(factory: RoleFactory, run: Callable[[RoleFactory, Any], None], data: Any) -> None:
    factory.ran.clear()
    factory.conn.execute(f"set local role {ROLE}".encode())
    run(factory, data)
    factory.conn.execute("reset role")


def test_every_statement_declares_privileges_and_has_a_role() -> None:
    files = {str(path.relative_to(SQL_FILES))[:-4] for path in SQL_FILES.rglob("*.sql")}
    assert files == set(STATEMENTS)
    assert set(ROLE_WORK) == set(ROLES)
    assert {name for names in ROLES.values() for name in names} == files - OWNERS_STATEMENTS


@pytest.mark.parametrize("role", ROLES)
def test_role_runs_all_its_statements_with_its_grants(factory: RoleFactory, role: str) -> None:
    give(factory, role)
    prepare_and_run(factory, *ROLE_WORK[role])
    assert factory.ran == set(ROLES[role])


@pytest.mark.parametrize("role", ROLES)
def test_no_grant_of_a_role_can_be_missed(factory: RoleFactory, role: str) -> None:
    """The server has the grants of other roles and of operator verbs: only the latter are tried."""
    give(factory, role)
    prepare, run = ROLE_WORK[role]
    # Leases must not lapse before the last grant is tried.
    factory.conn.execute("update laneway.worker_lanes set lease_seconds = 3600")
    data = prepare(factory)
    if role == "server":
        run_as_role(factory, run_others, data)
        run = run_own
    others = frozenset().union(*(privileges(other) for other in ROLES if other != "server"))
    factory.unproven = set(privileges(role) - (others if role == "server" else frozenset()))
    with factory.conn.transaction(force_rollback=True):
        run_as_role(factory, run, data)
    # What is left is needed by calls outside of statements, if at all.
    rest, factory.unproven = sorted(factory.unproven), set()
    needless = [each for each in rest if not factory.is_denied(each, lambda: run(factory, data))]
    assert needless == [], "\n".join(map(str, needless))


@pytest.mark.parametrize("role", ROLES)
def test_role_holds_nothing_outside_its_list(factory: RoleFactory, role: str) -> None:
    factory.conn.execute(f"grant delete on laneway.jobs to {ROLE}".encode())
    give(factory, role)
    tables = factory.conn.execute(
        "select table_name::text, lower(privilege_type) from information_schema.role_table_grants"
        " where grantee = %s",
        [ROLE],
    ).fetchall()
    routines = factory.conn.execute(
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
    factory: RoleFactory, role: str, forbidden: str
) -> None:
    give(factory, role)
    factory.conn.execute(f"set local role {ROLE}".encode())
    with pytest.raises(psycopg.errors.InsufficientPrivilege), factory.conn.transaction():
        factory.conn.execute(forbidden.encode())


def test_rights_of_reprioritize_are_enough_for_a_running_analysis(factory: RoleFactory) -> None:
    """Other operator verbs write leases too, so the loop above cannot detect it."""
    factory.publish("costly", has_analysis=True)
    job_id = factory.submit("costly")
    factory.claim(analysis_of("costly"))
    factory.conn.execute(f"grant usage on schema laneway to {ROLE}".encode())
    for privilege in expand(STATEMENTS["jobs/reprioritize_job"]):
        factory.conn.execute(f"grant {grant_text(privilege)} to {ROLE}".encode())
    factory.conn.execute(f"set local role {ROLE}".encode())
    assert factory.run(jobs.reprioritize(job_id, 5)).found_in == "pending"


def test_two_roles_can_be_given_together(factory: RoleFactory) -> None:
    give(factory, "worker", "client")
    prepare_and_run(factory, prepare_client, run_client)


def test_owner_owns_everything_and_migrator_acts_as_owner(factory: RoleFactory) -> None:
    conn = factory.conn
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


def test_new_owner_does_not_wait_for_reader(factory: RoleFactory, dsn: str) -> None:
    """Submits would wait for it."""
    with psycopg.connect(dsn) as reader:
        reader.execute("select from laneway.jobs")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            factory.conn.execute(grants(["owner"], ROLE, "no_owner").encode())


@pytest.mark.parametrize("name", ["", "x" * 64, "a\nb", "a\x00", "$owner$", "é" * 40])
def test_hostile_role_name_is_refused(name: str) -> None:
    for roles in (["worker"], ["owner"]):
        with pytest.raises(InvalidInput):
            grants(roles, name, "laneway_owner")


@pytest.mark.parametrize("name", ['a"; drop schema laneway; --', "a'b", "%I", "{to}", "SELECT"])
def test_odd_role_name_is_quoted(factory: RoleFactory, name: str) -> None:
    factory.conn.execute(SQL("create role {} nologin").format(Identifier(name)))
    for roles in (["reader"], ["owner"]):
        factory.conn.execute(grants(roles, name, "laneway_owner").encode())


def test_unknown_and_mixed_owning_roles_are_refused() -> None:
    for roles in (["admin"], [OWNING_ROLES[0], "worker"]):
        with pytest.raises(InvalidInput, match="role"):
            grants(roles, "x", "y")


def test_every_function_named_exists(factory: RoleFactory) -> None:
    found = factory.conn.execute(
        "select proname::text from pg_proc where pronamespace = 'laneway'::regnamespace"
        " and prorettype <> 'trigger'::regtype"
    ).fetchall()
    assert {row[0] for row in found} == set(FUNCTIONS)
