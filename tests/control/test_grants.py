"""Each database role can run its statements with exactly the rights of its list.

Everything happens in one transaction that is rolled back, the roles included.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

import laneway.store
from laneway.client import Client
from laneway.config import Settings
from laneway.domain.lane import Lane
from laneway.domain.states import Status
from laneway.errors import DatabaseUnavailable, InvalidInput
from laneway.store import explain, health, jobs, lanes, leases, notify, statement, workers
from laneway.store.grants import (
    FUNCTIONS,
    OWNING_ROLES,
    ROLES,
    STATEMENTS,
    Privilege,
    grants,
    privileges,
)
from laneway.store.jobs import Filter
from laneway.store.leases import LogEntry, Report, Verdict
from laneway.store.statement import Statement, nothing
from tests.control.scene import Scene

ROLE = Identifier("laneway_test_role")
SQL_FILES = Path(laneway.store.__file__).parent / "sql"


class Cast(Scene):
    """A scene played by another role, that remembers which statements were run."""

    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        super().__init__(conn)
        self.ran: set[str] = set()


@pytest.fixture
def cast(dsn: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cast]:
    read = statement.sql
    with (
        psycopg.connect(dsn, autocommit=True, application_name="tests") as conn,
        conn.transaction(force_rollback=True),
    ):
        conn.execute(SQL("create role {} nologin").format(ROLE))
        conn.execute("revoke execute on all functions in schema laneway from public")
        cast = Cast(conn)

        def remember(name: str) -> str:
            cast.ran.add(name)
            return read(name)

        monkeypatch.setattr(statement, "sql", remember)
        yield cast


def give(cast: Cast, *roles: str) -> None:
    cast.conn.execute(grants(roles, ROLE.as_string(None).strip('"'), "nobody").encode())


def act(cast: Cast, prepare: Callable[[Cast], Any], play: Callable[[Cast, Any], None]) -> None:
    """Prepares as the owner of everything, then plays as the role."""
    props = prepare(cast)
    cast.ran.clear()
    cast.conn.execute(SQL("set local role {}").format(ROLE))
    play(cast, props)
    cast.conn.execute("reset role")


# -- what each role does ----------------------------------------------------------------------


def prepare_worker(cast: Cast) -> None:
    for _ in range(4):
        cast.submit("ingestion", unique_key=str(uuid4()))
    cast.submit("polarity", delay=60.0)
    cast.conn.execute("update laneway.delayed set run_at = clock_timestamp() - interval '1 s'")
    cast.conn.execute("update laneway.worker_lanes set max_slots = 9 where name = 'interactive'")


def play_worker(cast: Cast, _: None) -> None:
    read_migrations(cast)
    cast.run(lanes.create(Lane("video"), "worker"))
    cast.run(lanes.adopt_type("video", "encode", "worker"))
    cast.publish("encode")
    cast.register(("ingestion",))
    cast.run(workers.touch(cast.worker_id))
    assert cast.run(lanes.peek(["ingestion", "polarity"])).promoted == ["polarity"]
    done, failing, silent, held = cast.claim("ingestion", room=4)
    assert cast.run(leases.heartbeat([done.seq], [1])) == []
    lines = [LogEntry(done, 1, "INFO", "hello", 0.0)]
    assert cast.run(leases.report([Report(done, done=1.0)], lines)) == []
    fenced = Verdict(done._replace(attempt=9), "finish")
    answers = cast.run(
        leases.settle([Verdict(done, "finish", "1"), Verdict(failing, "fail", delay_s=0.0), fenced])
    )
    assert sorted(answer.answer for answer in answers) == ["accepted", "fenced"]
    cast.run(leases.watch(cast.worker_id, 10.0))
    cast.conn.execute(
        "update laneway.lease set lease_until = clock_timestamp() - interval '1 s' where seq = %s",
        [silent.seq],
    )
    assert cast.run(leases.watch(cast.worker_id, 10.0)).reclaimed == 1
    assert cast.run(leases.bury(cast.worker_id, "gone", hung=True, culprit=held.seq)) > 0
    cast.run(leases.resign(cast.worker_id))
    cast.run(workers.stop(cast.worker_id))
    cast.run(workers.sweep(cast.worker_id))
    cast.run(notify.wake("wake *"))


def prepare_client(cast: Cast) -> dict[str, Any]:
    return {"running": cast.running("a").job_id, "ended": cast.completed("b")}


def play_client(cast: Cast, props: dict[str, Any]) -> None:
    read_migrations(cast)
    waiting = cast.submit(unique_key="k")
    assert cast.submit(unique_key="k") == waiting
    client = Client(None, Settings.load())  # type: ignore[arg-type]
    batch = [("bulk", {}, {"unique_key": "k"}), ("bulk", {}, {"delay": 60}), ("bulk", {})]
    for _ in range(2):
        made = asyncio.run(client.submit_many(batch, conn=cast.conn))
    assert [job.duplicate for job in made] == [True, False, False]
    without_copy(cast)
    cast.run(jobs.get(waiting))
    cast.run(jobs.get_attempts(props["ended"]))
    cast.run(jobs.wait(waiting))
    assert cast.run(jobs.cancel(waiting, "me", None)).found_in == "approved"
    assert cast.run(jobs.cancel(props["running"], "me", None)).found_in == "running"
    assert cast.run(jobs.cancel(props["ended"], "me", None)).found_in == "completed"
    cast.run(notify.wake("wake *"))


def without_copy(cast: Cast) -> None:
    """The statement for drivers that have no COPY, with a batch of nothing."""
    text = statement.sql("jobs/insert_batch")
    params: dict[str, object] = {name: [] for name in re.findall(r"%\((\w+)\)s", text)}
    cast.run(Statement("jobs/insert_batch", nothing, {**params, "now": "2030-01-01T00:00:00Z"}))


def play_reader(cast: Cast, props: dict[str, Any]) -> None:
    read_migrations(cast)
    cast.conn.execute("select id, lane, status from laneway.jobs_view")
    for status in (None, Status.APPROVED, Status.RUNNING, Status.COMPLETED):
        cast.run(jobs.listing(Filter(status=status)))
    for read in (jobs.get, jobs.get_attempts, jobs.wait, explain.facts):
        cast.run(read(props["running"]))
    for lookup in (lanes.read, lanes.read_gate, lanes.measure, lanes.active, workers.listing):
        cast.run(lookup())
    cast.run(workers.published(["greet"]))
    cast.run(health.count_lapsed())


def prepare_server(cast: Cast) -> dict[str, Any]:
    prepare_worker(cast)
    waiting = cast.submit("c")
    return {
        **prepare_client(cast), "waiting": waiting,
        "failed": cast.failed("d", unique_key="f"), "old": cast.completed("e"),
    }  # fmt: skip


def play_server(cast: Cast, props: dict[str, Any]) -> None:
    play_reader(cast, props)
    play_client(cast, props)
    play_worker(cast, None)
    assert cast.run(jobs.reprioritize(props["waiting"], 5)).found_in == "approved"
    assert cast.run(jobs.reprioritize(props["old"], 5)).found_in == "completed"
    assert cast.run(jobs.retry(props["failed"])).found_in == "failed"
    assert cast.run(jobs.retry(props["failed"])).found_in == "approved"
    assert cast.run(jobs.delete(props["old"])) == props["old"]
    cast.run(lanes.tune("system", {"max_slots": 3}, "me"))
    cast.run(lanes.move_type("system", "c", "me"))
    cast.run(lanes.pause(True, "me"))
    cast.run(health.read_server())
    cast.run(health.oldest_snapshot())


def read_migrations(cast: Cast) -> None:
    cast.conn.execute("select number from laneway.migrations")


PLAYS: dict[str, tuple[Callable[[Cast], Any], Callable[[Cast, Any], None]]] = {
    "worker": (prepare_worker, play_worker),
    "client": (prepare_client, play_client),
    "reader": (prepare_client, play_reader),
    "server": (prepare_server, play_server),
}


# -- laws -------------------------------------------------------------------------------------


def test_every_statement_says_what_it_needs_and_has_a_role() -> None:
    files = {str(path.relative_to(SQL_FILES))[:-4] for path in SQL_FILES.rglob("*.sql")}
    assert files == set(STATEMENTS)
    assert set(PLAYS) == set(ROLES)
    assert {name for names in ROLES.values() for name in names} == files


@pytest.mark.parametrize("role", ROLES)
def test_a_role_runs_all_its_statements_with_its_grants(cast: Cast, role: str) -> None:
    give(cast, role)
    act(cast, *PLAYS[role])
    assert cast.ran == set(ROLES[role])


@pytest.mark.parametrize("role", ROLES)
def test_no_grant_of_a_role_can_be_missed(cast: Cast, role: str) -> None:
    """The server's are those of the others and of the operator's verbs: only the last are tried."""
    give(cast, role)
    needless = []
    others = frozenset().union(*(privileges(other) for other in ROLES if other != "server"))
    for privilege in sorted(privileges(role) - (others if role == "server" else frozenset())):
        with cast.conn.transaction(force_rollback=True):
            cast.conn.execute(_revoke(privilege))
            try:
                with cast.conn.transaction():
                    act(cast, *PLAYS[role])
            except (DatabaseUnavailable, psycopg.errors.InsufficientPrivilege) as error:
                assert "permission denied" in str(error)  # noqa: PT017 - in a loop over grants
            else:
                needless.append(privilege)
    assert needless == []


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
        ("server", "create table laneway.more ()"),
        ("server", "drop table laneway.logs"),
    ],
)
def test_a_role_is_refused_what_it_does_not_need(cast: Cast, role: str, forbidden: str) -> None:
    give(cast, role)
    cast.conn.execute(SQL("set local role {}").format(ROLE))
    with pytest.raises(psycopg.errors.InsufficientPrivilege), cast.conn.transaction():
        cast.conn.execute(forbidden.encode())


def test_two_roles_can_be_given_together(cast: Cast) -> None:
    give(cast, "worker", "client")
    act(cast, prepare_client, play_client)


def test_the_owner_owns_everything_and_the_migrator_acts_as_it(cast: Cast) -> None:
    conn = cast.conn
    conn.execute(grants(["owner"], "laneway_test_role", "nobody").encode())
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
