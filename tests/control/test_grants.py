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
from laneway.errors import DatabaseUnavailable, InvalidInput
from laneway.store import (
    jobs,
    statement,
)
from laneway.store.function_rights import FUNCTIONS
from laneway.store.grants import Privilege, expand, grants, privileges
from laneway.store.rights import OWNERS_STATEMENTS, OWNING_ROLES, ROLES, STATEMENTS
from tests.control.role_plays import PLAYS, Cast, play_client, play_others, play_own, prepare_client

ROLE = Identifier("laneway_test_role")
SQL_FILES = Path(laneway.store.__file__).parent / "sql"
# The audit is append-only for every role.
AUDIT_CHANGES = (
    "update laneway.audit set actor = 'other'",
    "delete from laneway.audit",
    "truncate laneway.audit",
)


@pytest.fixture
def cast(dsn: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cast]:
    read = statement.sql
    with (
        psycopg.connect(dsn, autocommit=True, application_name="tests") as conn,
        conn.transaction(force_rollback=True),
    ):
        conn.execute(SQL("create role {} nologin").format(ROLE))
        conn.execute("revoke execute on all functions in schema laneway from public")
        # So that every change is logged.
        conn.execute("insert into laneway.watches (seq, until) values (0, 'infinity')")
        cast = Cast(conn)

        def remember(name: str) -> str:
            cast.ran.add(name)
            return read(name)

        monkeypatch.setattr(statement, "sql", remember)
        yield cast


def give(cast: Cast, *roles: str) -> None:
    cast.conn.execute(grants(roles, ROLE.as_string(None).strip('"'), "no_owner").encode())


def act(cast: Cast, prepare: Callable[[Cast], Any], play: Callable[[Cast, Any], None]) -> None:
    """Prepares as the owner of everything, then plays as the role."""
    perform(cast, play, prepare(cast))


def perform(cast: Cast, play: Callable[[Cast, Any], None], props: Any) -> None:
    cast.ran.clear()
    cast.conn.execute(SQL("set local role {}").format(ROLE))
    play(cast, props)
    cast.conn.execute("reset role")


def test_every_statement_says_what_it_needs_and_has_a_role() -> None:
    files = {str(path.relative_to(SQL_FILES))[:-4] for path in SQL_FILES.rglob("*.sql")}
    assert files == set(STATEMENTS)
    assert set(PLAYS) == set(ROLES)
    assert {name for names in ROLES.values() for name in names} == files - OWNERS_STATEMENTS


@pytest.mark.parametrize("role", ROLES)
def test_a_role_runs_all_its_statements_with_its_grants(cast: Cast, role: str) -> None:
    give(cast, role)
    act(cast, *PLAYS[role])
    assert cast.ran == set(ROLES[role])


@pytest.mark.parametrize("role", ROLES)
def test_no_grant_of_a_role_can_be_missed(cast: Cast, role: str) -> None:
    """The server's are those of the others and of the operator's verbs: only the last are tried."""
    give(cast, role)
    prepare, play = PLAYS[role]
    # Once for all: what runs then must not lapse before the last grant was tried.
    cast.conn.execute("update laneway.worker_lanes set lease_seconds = 3600")
    props = prepare(cast)
    if role == "server":
        perform(cast, play_others, props)
        play = play_own
    needless = []
    others = frozenset().union(*(privileges(other) for other in ROLES if other != "server"))
    for privilege in sorted(privileges(role) - (others if role == "server" else frozenset())):
        with cast.conn.transaction(force_rollback=True):
            cast.conn.execute(_revoke(privilege))
            try:
                with cast.conn.transaction():
                    perform(cast, play, props)
            except (DatabaseUnavailable, psycopg.errors.InsufficientPrivilege) as error:
                assert "permission denied" in str(error)  # noqa: PT017 - in a loop over grants
            else:
                needless.append(privilege)
    assert needless == [], "\n".join(map(str, needless))


@pytest.mark.parametrize("role", ROLES)
def test_a_role_holds_nothing_outside_its_list(cast: Cast, role: str) -> None:
    name = ROLE.as_string(None).strip('"')
    cast.conn.execute(SQL("grant delete on laneway.jobs to {}").format(ROLE))
    give(cast, role)
    tables = cast.conn.execute(
        "select table_name::text, lower(privilege_type) from information_schema.role_table_grants"
        " where grantee = %s",
        [name],
    ).fetchall()
    routines = cast.conn.execute(
        "select routine_name::text from information_schema.role_routine_grants where grantee = %s",
        [name],
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
def test_a_role_is_refused_what_it_does_not_need(cast: Cast, role: str, forbidden: str) -> None:
    give(cast, role)
    cast.conn.execute(SQL("set local role {}").format(ROLE))
    with pytest.raises(psycopg.errors.InsufficientPrivilege), cast.conn.transaction():
        cast.conn.execute(forbidden.encode())


def test_the_rights_of_reprioritize_are_enough_for_a_running_analysis(cast: Cast) -> None:
    """Others of the operator's verbs write leases too, so no role would miss it."""
    cast.publish("costly", has_analysis=True)
    job_id = cast.submit("costly")
    cast.claim(analysis_of("costly"))
    cast.conn.execute(SQL("grant usage on schema laneway to {}").format(ROLE))
    for privilege in expand(STATEMENTS["jobs/reprioritize_job"]):
        cast.conn.execute(_revoke(privilege).replace(b"revoke", b"grant").replace(b"from", b"to"))
    cast.conn.execute(SQL("set local role {}").format(ROLE))
    assert cast.run(jobs.reprioritize(job_id, 5)).found_in == "pending"


def test_two_roles_can_be_given_together(cast: Cast) -> None:
    give(cast, "worker", "client")
    act(cast, prepare_client, play_client)


def test_the_owner_owns_everything_and_the_migrator_acts_as_it(cast: Cast) -> None:
    conn = cast.conn
    conn.execute(grants(["owner"], "laneway_test_role", "no_owner").encode())
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
    conn.execute(grants(["migrator"], "laneway_test_migrator", "laneway_test_role").encode())
    conn.execute("set local role laneway_test_migrator")
    conn.execute("set local role laneway_test_role")
    conn.execute("create table laneway.more ()")


def test_new_owner_does_not_wait_behind_a_reader(cast: Cast, dsn: str) -> None:
    """Submits would queue behind it."""
    with psycopg.connect(dsn) as reader:
        reader.execute("select from laneway.jobs")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            cast.conn.execute(grants(["owner"], "laneway_test_role", "no_owner").encode())


@pytest.mark.parametrize("name", ["", "x" * 64, "a\nb", "a\x00", "$owner$", "é" * 40])
def test_a_hostile_role_name_is_refused(name: str) -> None:
    for roles in (["worker"], ["owner"]):
        with pytest.raises(InvalidInput):
            grants(roles, name, "laneway_owner")


@pytest.mark.parametrize("name", ['a"; drop schema laneway; --', "a'b", "%I", "{to}", "SELECT"])
def test_an_odd_role_name_is_quoted(cast: Cast, name: str) -> None:
    cast.conn.execute(SQL("create role {} nologin").format(Identifier(name)))
    for roles in (["reader"], ["owner"]):
        cast.conn.execute(grants(roles, name, "laneway_owner").encode())


def test_unknown_and_mixed_owning_roles_are_refused() -> None:
    for roles in (["admin"], [OWNING_ROLES[0], "worker"]):
        with pytest.raises(InvalidInput, match="role"):
            grants(roles, "x", "y")


def test_every_function_named_exists(cast: Cast) -> None:
    found = cast.conn.execute(
        "select proname::text from pg_proc where pronamespace = 'laneway'::regnamespace"
        " and prorettype <> 'trigger'::regtype"
    ).fetchall()
    assert {row[0] for row in found} == set(FUNCTIONS)


def _revoke(privilege: Privilege) -> bytes:
    kind = "" if privilege.kind == "table" else privilege.kind
    text = f"revoke {privilege.right} on {kind} laneway.{privilege.name} from laneway_test_role"
    return text.encode()
