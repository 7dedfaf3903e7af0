"""Row 14 of the checklist: the server's database role sees no more than the caller's workspaces.

On a real second role that logs in, with the application's own filter out of the way.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import psycopg
import pytest
from psycopg.sql import SQL, Identifier

import laneway.api
from laneway.api.app import make_app
from laneway.client import Client
from laneway.config.settings import Settings
from laneway.domain.filter import JobFilter
from laneway.domain.permissions import Access, Grant
from laneway.errors import DatabaseUnavailable
from laneway.store import approvals, explain, jobs, lanes
from laneway.store.database import Database
from laneway.store.grants import grants
from laneway.store.statement import Statement, scalar
from tests.api.conftest import People
from tests.support.job_factory import JobFactory

OURS, THEIRS = "ours", "theirs, and 'odd' {\"ones\"}"


def login(conn: psycopg.Connection[Any], dsn: str, *roles: str) -> Iterator[str]:
    """The DSN of a database role with the grants of these roles."""
    name = f"lw {uuid4().hex[:12]}"
    role = Identifier(name)
    conn.execute(SQL("create role {} login password 'pw'").format(role))
    try:
        conn.execute(grants(roles, name, "nobody").encode())
        yield re.sub(r"//[^@]*@", f"//{name.replace(' ', '%20')}:pw@", dsn, count=1)
    finally:
        conn.execute(SQL("drop owned by {}").format(role))
        conn.execute(SQL("drop role {}").format(role))


@pytest.fixture
def server_dsn(conn: psycopg.Connection[Any], dsn: str) -> Iterator[str]:
    yield from login(conn, dsn, "server")


@pytest.fixture
def client_dsn(conn: psycopg.Connection[Any], dsn: str, server_dsn: str) -> Iterator[str]:
    """The DSN of a submitting program, in a database with a restricted server role."""
    yield from login(conn, dsn, "client", "worker")


@pytest.fixture
async def database(server_dsn: str) -> AsyncIterator[Database]:
    database = Database(server_dsn, Settings.load(database_url=server_dsn), role="tests api")
    yield database
    await database.close()


def furnish(factory: JobFactory) -> dict[str, list[Any]]:
    """Jobs in every table, in both workspaces."""
    made: dict[str, list[Any]] = {}
    for workspace in (OURS, THEIRS):
        made[workspace] = [
            factory.completed(workspace=workspace),
            factory.failed(workspace=workspace),
            factory.running(workspace=workspace).job_id,
            factory.submit(workspace=workspace, delay=60.0),
            factory.submit("polarity", workspace=workspace),
        ]
    return made


async def test_without_the_applications_filter_other_workspaces_stay_unseen(
    database: Database, factory: JobFactory
) -> None:
    made = furnish(factory)
    ours = await database.within([OURS])
    listed = (await ours.run(jobs.listing(JobFilter(), limit=200))).items
    assert {job.id for job in listed} == set(made[OURS])
    for status in {job.status for job in listed}:
        found = (await ours.run(jobs.listing(JobFilter(status=status), limit=200))).items
        assert {job.workspace for job in found} == {OURS}
    assert (await ours.run(jobs.count(JobFilter(), limit=200))).matched == len(made[OURS])
    for job_id in made[THEIRS]:
        assert await ours.run(jobs.get(job_id)) is None
        assert await ours.run(jobs.get_attempts(job_id)) == []
        assert await ours.run(approvals.decisions(job_id)) == []
        assert await ours.run(explain.facts(job_id)) is None
        assert (await ours.run(jobs.cancel(job_id, "me", None))).found_in is None
    active = await ours.run(lanes.active())
    assert {job.id for job in active} == {made[OURS][2]}
    for table in ("jobs", "jobs_view", "jobs_as_text"):
        async with ours.transaction() as transaction:
            seen = await transaction.run(_count(table))
        assert seen == len(made[OURS]), table


def _count(table: str) -> Statement[int]:
    class Counting(Statement[int]):
        @property
        def text(self) -> str:
            return f"select count(*) from laneway.{table}"

    return Counting("none", scalar)


async def test_odd_missing_and_several_workspaces_are_distinguished(
    database: Database, factory: JobFactory
) -> None:
    made = furnish(factory)
    for names in ([], [OURS], [THEIRS], [OURS, THEIRS], ["nowhere", "{}", ""]):
        seen = await (await database.within(names)).run(jobs.listing(JobFilter(), limit=200))
        assert {job.id for job in seen.items} == {i for name in names for i in made.get(name, [])}


async def test_narrowed_transaction_leaves_nothing_to_the_next(
    database: Database, factory: JobFactory
) -> None:
    made = furnish(factory)
    everything = sum(map(len, made.values()))
    ours = await database.within([OURS])
    await ours.run(jobs.newest())
    async with ours.transaction() as transaction:
        await transaction.run(jobs.newest())
    async with ours.joined() as joined:
        assert (await joined.run(jobs.count(JobFilter(), limit=200))).matched == len(made[OURS])
    assert database.idle == 1
    assert (await database.run(jobs.count(JobFilter(), limit=200))).matched == everything
    assert await database.within(None) is database


async def test_submit_into_other_workspace_is_refused(database: Database) -> None:
    ours = await database.within([OURS])
    client = Client(ours, database.settings)
    async with ours.connection() as conn:
        await client.submit("greet", {}, workspace=OURS, conn=conn)
        await client.submit_many([("greet", {}, {"workspace": OURS})], conn=conn)
    with pytest.raises(DatabaseUnavailable, match="row-level security"):
        async with ours.connection() as conn:
            await client.submit("greet", {}, workspace=THEIRS, conn=conn)
    await client.close()


async def test_api_works_as_before_and_is_narrowed_by_the_callers_grants(
    database: Database, factory: JobFactory, people: People
) -> None:
    made = furnish(factory)
    app = make_app(database.settings, database)
    transport = httpx2.ASGITransport(app)
    ann = people.new("ann", "operator", workspace=OURS)
    boss = people.new("boss", "operator")
    async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:

        async def get(who: Any, path: str) -> Any:
            return await client.get(path, headers=who.headers)

        for who, count in ((ann, 5), (boss, 10)):
            listed = (await get(who, "/jobs")).json()["items"]
            assert len(listed) == count
            for job_id in made[OURS]:
                assert (await get(who, f"/jobs/{job_id}")).status_code == 200
                assert (await get(who, f"/jobs/{job_id}/explain")).status_code == 200
        assert (await get(ann, f"/jobs/{made[THEIRS][0]}")).status_code == 404
        keyed = {"job_type": "greet", "workspace": OURS, "unique_key": "k"}
        batch = {"jobs": [{"job_type": "greet", "workspace": OURS}, keyed]}
        for path, body in (("/jobs", keyed | {"unique_key": "l"}), ("/jobs/batch", batch)):
            sent = await client.post(path, json=body, headers=ann.headers)
            assert sent.status_code == 202, sent.text
        made_id = sent.json()["items"][0]["id"]
        done = await client.post(f"/jobs/{made_id}/cancel", headers=ann.headers)
        assert done.json()["status"] == "cancelled"
        done = await client.post(f"/jobs/{made_id}/retry", headers=ann.headers)
        assert done.json()["status"] == "approved"
    await app.state.close()


async def test_other_roles_are_not_bound(
    client_dsn: str, factory: JobFactory, conn: psycopg.Connection[Any]
) -> None:
    made = furnish(factory)
    database = Database(client_dsn, Settings.load(database_url=client_dsn), role="tests api")
    client = Client(database, database.settings)
    for workspace, ids in made.items():
        for job_id in ids:
            job = await database.run(jobs.get(job_id))
            assert job is not None
            assert job.workspace == workspace
    many = await client.submit_many([("greet", {"n": n}) for n in range(300)])
    assert len(await client.submit_many([("greet", {})])) == 1
    assert len({job.id for job in many}) == 300
    await client.close()
    await database.close()
    # A role that may bypass, as the owner does, keeps COPY.
    assert _may_copy(conn, client_dsn) == (False,)
    name = client_dsn.split("//")[1].split(":")[0].replace("%20", " ")
    conn.execute(SQL("alter role {} bypassrls").format(Identifier(name)))
    assert _may_copy(conn, client_dsn) == (True,)
    owner = conn.execute("select not row_security_active('laneway.jobs')").fetchone()
    assert owner == (True,)


def _may_copy(conn: psycopg.Connection[Any], dsn: str) -> Any:
    with psycopg.connect(dsn, application_name="tests") as own:
        return own.execute("select not row_security_active('laneway.jobs')").fetchone()


async def test_single_role_is_not_bound_and_pays_nothing(dsn: str) -> None:
    database = Database(dsn, Settings.load(database_url=dsn), role="tests api")
    assert await database.within([OURS]) is database
    await database.close()


@pytest.mark.parametrize(
    "grants_, token, expected",
    [
        ([], None, frozenset()),
        ([("jobs:read", "workspace", OURS)], None, frozenset({OURS})),
        (
            [("jobs:read", "workspace", OURS), ("jobs:cancel", "own", "b")],
            None,
            frozenset({OURS, "b"}),
        ),
        ([("jobs:read", "workspace", OURS), ("jobs:submit", "own", None)], None, None),
        (
            [("jobs:read", "workspace", OURS), ("jobs:submit", "own", None)],
            {"jobs:read"},
            frozenset({OURS}),
        ),
        (
            [("jobs:read", "workspace", OURS), ("metrics:read", "all", None)],
            None,
            frozenset({OURS}),
        ),
        ([("workers:view", "all", None)], None, None),
    ],
)
def test_caller_reaches_into_the_workspaces_of_its_grants(
    grants_: Any, token: Any, expected: Any
) -> None:
    given = tuple(
        Grant(frozenset({permission}), scope, workspace) for permission, scope, workspace in grants_
    )
    allowed = None if token is None else frozenset(token)
    access = Access(uuid4(), "ann", "person", given, token_permissions=allowed)
    assert access.workspaces == expected


def test_routes_ask_the_database_of_their_caller() -> None:
    """The server's unrestricted connection is for requests without a workspace."""
    used = {
        path.name
        for path in Path(laneway.api.__file__).parent.glob("*.py")
        if "request.app.state.database" in path.read_text(encoding="utf-8")
    }
    # Counters of a principal's ended jobs are swept in every workspace: job_access.py.
    assert used <= {
        "auth.py",
        "session.py",
        "health.py",
        "observability/metrics.py",
        "job_access.py",
    }
