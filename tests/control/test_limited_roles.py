"""Laws of the limited database roles: none writes jobs or decisions but through functions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote
from uuid import uuid4

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from laneway.client import Client
from laneway.config.settings import Settings
from laneway.control import approval, health
from laneway.control.health_check import Finding
from laneway.domain.approval import Approval
from laneway.errors import DatabaseUnavailable, InvalidInput
from laneway.store.database import Database
from laneway.store.function_rights import FUNCTIONS
from laneway.store.grants import grants, privileges
from laneway.store.rights import ROLES
from tests.support.job_factory import JobFactory

ROLE = "laneway_limited_role"
# These roles write no rows of jobs: functions check and write for them.
LIMITED = ("client", "approver", "handler", "reader")
SEAL = "laneway.seal(payload, null)"
FORGERIES = (
    "insert into laneway.ready (seq, job_type, rank, sealed) values (1, 't', 0, true)",
    (
        "insert into laneway.delayed (seq, job_type, rank, sealed, run_at)"
        " values (1, 't', 0, true, now())"
    ),
    (
        "insert into laneway.approvals (seq, decision, decided_by, decided_at, seal)"
        f" select seq, 'approved', 'boss', now(), {SEAL} from laneway.jobs"
    ),
    f"update laneway.approvals set decision = 'approved', seal = {SEAL} from laneway.jobs",
    (
        "insert into laneway.jobs (seq, id, job_type, payload)"
        " values (99, gen_random_uuid(), 't', '{}')"
    ),
    "insert into laneway.job_keys values ('default', 't', 'k', 99)",
    "delete from laneway.awaiting",
    "delete from laneway.lease",
    "insert into laneway.outcome (seq, status) values (1, 'completed')",
    "insert into laneway.decisions (seq, decision) values (1, 'approved')",
    "update laneway.job_types set approval = 'never'",
    "select setval('laneway.jobs_seq_seq', 9)",
    "select laneway.make_claimable(1, 't', 0, 0, true, now())",
    "select laneway.start_approval(1, now(), null)",
    "select laneway.place(1, now(), null)",
    "select laneway.close_awaiting(1, 'approved', 'boss', null, now())",
)


@pytest.fixture
def play(dsn: str) -> Iterator[JobFactory]:
    """A job factory in one transaction that is rolled back, including the role."""
    with (
        psycopg.connect(dsn, autocommit=True, application_name="tests") as conn,
        conn.transaction(force_rollback=True),
    ):
        conn.execute(SQL("create role {} nologin").format(Identifier(ROLE)))
        yield JobFactory(conn)


@contextmanager
def acting(factory: JobFactory, *roles: str) -> Iterator[None]:
    factory.conn.execute(grants(roles, ROLE, "no_owner").encode())
    factory.conn.execute(SQL("set local role {}").format(Identifier(ROLE)))
    yield
    factory.conn.execute("reset role")


@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.parametrize("role", LIMITED)
def test_limited_role_cannot_write_a_decision_or_a_place_in_the_queue(
    play: JobFactory, role: str, forgery: str
) -> None:
    play.publish("t", approval=Approval(two_person=True))
    play.submit("t", created_by="ann")
    with (
        acting(play, role),
        pytest.raises(psycopg.errors.InsufficientPrivilege),
        play.conn.transaction(),
    ):
        play.conn.execute(forgery.encode())


@pytest.mark.parametrize("role", LIMITED)
def test_limited_role_writes_no_table_but_the_audit(role: str) -> None:
    written = {p.name for p in privileges(role) if p.kind == "table" and p.right != "select"}
    assert written <= {"audit"}


def test_every_function_is_for_those_it_is_granted_to(play: JobFactory) -> None:
    """Exactly the roles whose statements call a function may execute it."""
    functions = play.conn.execute(
        "select p.oid, p.proname::text, p.prosecdef, p.proconfig,"
        " p.prorettype = 'trigger'::regtype, has_function_privilege('public', p.oid, 'execute')"
        " from pg_proc p where p.pronamespace = 'laneway'::regnamespace"
    ).fetchall()
    callers: dict[str, set[str]] = {name: set() for name in FUNCTIONS}
    for role in ROLES:
        for privilege in privileges(role):
            if privilege.kind == "function":
                callers[privilege.name].add(role)
    assert [name for _, name, _, _, _, is_public in functions if is_public] == []
    unfixed = [
        name
        for _, name, is_definer, config, _, _ in functions
        if is_definer and "search_path=pg_catalog, pg_temp" not in (config or [])
    ]
    assert unfixed == []
    for role in ROLES:
        play.conn.execute(grants([role], ROLE, "no_owner").encode())
        allowed = {
            row[0]
            for row in play.conn.execute(
                "select p.proname::text from pg_proc p"
                " where p.pronamespace = 'laneway'::regnamespace"
                " and has_function_privilege(%s, p.oid, 'execute')",
                [ROLE],
            )
        }
        assert allowed == {name for name, roles in callers.items() if role in roles}, role


@pytest.mark.parametrize(
    "call",
    [
        "select laneway.prune_events(gen_random_uuid(), 1, 0, 9)",
        "select laneway.fire('n', now(), now(), now(), '{}', '{}', '{}', gen_random_uuid(), null)",
        "select laneway.emit('{1}', 'finished')",
        "select laneway.delete_uncharged_attempts(1, 1)",
        "select laneway.submit('t')",
        "select laneway.cancel(1, 'me', null)",
    ],
)
def test_reader_and_other_roles_call_no_writing_function(play: JobFactory, call: str) -> None:
    for roles in ([], ["reader"]):
        play.conn.execute(SQL("grant usage on schema laneway to {}").format(Identifier(ROLE)))
        if roles:
            play.conn.execute(grants(roles, ROLE, "no_owner").encode())
        play.conn.execute(SQL("set local role {}").format(Identifier(ROLE)))
        with pytest.raises(psycopg.errors.InsufficientPrivilege), play.conn.transaction():
            play.conn.execute(call.encode())
        play.conn.execute("reset role")


async def test_client_role_submits_batches_of_every_kind(play: JobFactory) -> None:
    play.publish("gated", approval=Approval())
    play.publish("aged", max_age_s=60.0)
    play.publish("two", approval=Approval(two_person=True))
    client = Client(None, Settings.load())  # type: ignore[arg-type]
    with acting(play, "client"):
        made = await client.submit_many(
            [
                ("plain", {"n": 1}, {"tags": ["a", 'b"c'], "priority": 7}),
                ("plain", {}, {"delay": 60}),
                ("gated", {}),
                ("aged", {}),
                ("plain", {}, {"unique_key": "k"}),
                ("plain", {}, {"unique_key": "k"}),
            ],
            conn=play.conn,
        )
        again = await client.submit_many([("plain", {}, {"unique_key": "k"})], conn=play.conn)
        with pytest.raises(InvalidInput, match=r"jobs\[1\]\.created_by"):
            await client.submit_many([("plain", {}), ("two", {})], conn=play.conn)
    assert [(job.status, job.duplicate) for job in made] == [
        ("approved", False), ("approved", False), ("awaiting_approval", False),
        ("approved", False), ("approved", False), ("approved", True),
    ]  # fmt: skip
    assert (again[0].id, again[0].duplicate) == (made[4].id, True)
    assert made[5].id == made[4].id
    rows = play.conn.execute(
        "select id, priority, tags, status from laneway.jobs_view order by seq"
    ).fetchall()
    assert [row[0] for row in rows] == [job.id for job in made[:5]]
    assert rows[0][1:3] == (7, ["a", 'b"c'])
    assert play.conn.execute("select count(*) from laneway.deadlines").fetchone() == (1,)
    assert play.conn.execute("select count(*) from laneway.delayed").fetchone() == (1,)


def test_batch_of_a_client_never_skips_the_approval_in_force(play: JobFactory) -> None:
    play.publish("gated", approval=Approval())
    with acting(play, "client"):
        play.conn.execute(
            "select * from laneway.submit_batch(array[gen_random_uuid()], '[{}]', '{0}',"
            ' \'[{"job_type": "gated"}]\')'
        )
    assert play.conn.execute("select status from laneway.jobs_view").fetchone() == (
        "awaiting_approval",
    )
    assert play.claim("gated") == []


@pytest.fixture
def other(factory: JobFactory) -> Iterator[str]:
    name, conn = f"lw {uuid4().hex[:12]}", factory.conn
    role = Identifier(name)
    conn.execute(SQL("create role {} nologin").format(role))
    yield name
    conn.execute(SQL("drop owned by {}").format(role))
    conn.execute(SQL("drop role {}").format(role))


@pytest.mark.parametrize("role", ["reader", "approver"])
async def test_job_is_shown_with_the_grants_of_an_earlier_version(
    dsn: str, factory: JobFactory, other: str, role: str
) -> None:
    job_id = factory.submit()
    factory.conn.execute(grants([role], other, "no_owner").encode())
    revoke = "revoke select on laneway.open_edges, laneway.links from {}"
    factory.conn.execute(SQL(revoke).format(Identifier(other)))
    options = quote(f"-c role={other.replace(' ', chr(92) + ' ')}")
    separator = "&" if "?" in dsn else "?"
    limited = Database(f"{dsn}{separator}options={options}", Settings(), role="test", size=1)
    try:
        assert (await approval.review(limited, job_id)).job.id == job_id
    finally:
        await limited.close()


async def test_doctor_names_public_functions(db: Database, factory: JobFactory) -> None:
    assert (await health.check_rights(db)).finding is Finding.OK
    factory.conn.execute("grant execute on function laneway.lane_of to public")
    found = await health.check_rights(db)
    assert found.finding is Finding.WARN
    assert "lane_of" in found.message
    factory.conn.execute("grant execute on function laneway.fire to public")
    found = await health.check_rights(db)
    assert found.finding is Finding.FAIL
    assert "fire" in found.message
    assert found.next is not None
    assert "revoke execute on all functions in schema laneway from public" in found.next


async def test_doctor_names_roles_with_the_grants_of_an_earlier_version(
    db: Database, factory: JobFactory, other: str
) -> None:
    factory.conn.execute(SQL("grant insert on laneway.ready to {}").format(Identifier(other)))
    found = await health.check_rights(db)
    assert (found.finding, other in found.message) == (Finding.WARN, True)
    assert "laneway db grants" in str(found.next)
    factory.conn.execute(grants(["client"], other, "no_owner").encode())
    assert (await health.check_rights(db)).finding is Finding.OK
    factory.conn.execute(grants(["worker"], other, "no_owner").encode())
    assert (await health.check_rights(db)).finding is Finding.OK


def test_narrowed_server_cannot_submit_into_another_workspace(play: JobFactory) -> None:
    with acting(play, "server"):
        play.conn.execute("select set_config('laneway.workspaces', '{ours}', true)")
        play.submit("t", workspace="ours")
        with pytest.raises(DatabaseUnavailable, match="theirs"), play.conn.transaction():
            play.submit("t", workspace="theirs")


BATCH_OF_TWO = b"""
select * from laneway.submit_batch(
    array[gen_random_uuid(), gen_random_uuid()], '[{}, {"n": 1}]', '{0, 1}',
    '[{"job_type": "t", "workspace": "ours"}, {"job_type": "t", "workspace": "theirs"}]')
"""


def test_narrowed_batch_names_the_job_in_another_workspace(play: JobFactory) -> None:
    """The function has its owner's rights, and row-level security does not apply to the owner."""
    refused = r"jobs\[1\]\.workspace theirs is outside of laneway\.workspaces"
    with acting(play, "client", "server"):
        play.conn.execute("select set_config('laneway.workspaces', '{ours}', true)")
        with (
            pytest.raises(psycopg.errors.InsufficientPrivilege, match=refused),
            play.conn.transaction(),
        ):
            play.conn.execute(BATCH_OF_TWO)
        play.conn.execute("select set_config('laneway.workspaces', '{ours,theirs}', true)")
        assert len(play.conn.execute(BATCH_OF_TWO).fetchall()) == 2
    stored = play.conn.execute("select count(*) from laneway.jobs").fetchone()
    assert stored == (2,)


DROPS_ROWS = """
create function public.drop_row() returns trigger language plpgsql as
    $$ begin if new.payload ? 'n' then return null; end if; return new; end $$;
create trigger drop_row before insert on laneway.jobs
    for each row execute function public.drop_row();
"""


def test_batch_is_refused_where_the_table_does_not_take_every_job(play: JobFactory) -> None:
    play.conn.execute(DROPS_ROWS)
    with (
        acting(play, "client"),
        pytest.raises(psycopg.errors.RaiseException, match="only 1 jobs of the batch were stored"),
        play.conn.transaction(),
    ):
        play.conn.execute(BATCH_OF_TWO)
    for table in ("jobs", "ready"):
        count = play.conn.execute(f"select count(*) from laneway.{table}".encode()).fetchone()
        assert count == (0,)
