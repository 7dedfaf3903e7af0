"""Concurrent submits share a commit, and nothing else."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TypeVar
from uuid import uuid4

import psycopg
import pytest

from laneway.api.http.group_commit import AT_ONCE, FULL, GroupCommit
from laneway.api.http.middleware import request_id
from laneway.config.settings import Settings
from laneway.domain.actor import Actor
from laneway.domain.bounds import Bounds
from laneway.domain.job import Job, NewJob, new_job_id
from laneway.domain.states import Status
from laneway.errors import DatabaseUnavailable, InvalidInput, QuotaExceeded
from laneway.store.database import Database
from laneway.store.quotas import Quota
from laneway.store.statement import Statement
from tests.support.job_factory import JobFactory

T = TypeVar("T")
ACTOR = Actor("ann", door="http", principal_id=uuid4(), request_id="r1", address="127.0.0.1")


def a_job(**fields: object) -> NewJob:
    return replace(NewJob(id=new_job_id(), job_type="greet", created_by="ann"), **fields)  # type: ignore[arg-type]


@pytest.fixture
async def database(dsn: str) -> AsyncIterator[Database]:
    made = Database(dsn, Settings.load(database_url=dsn), size=AT_ONCE)
    yield made
    await made.close()


async def test_concurrent_submits_share_commits_with_own_audit_entries(
    database: Database, dsn: str
) -> None:
    together = GroupCommit(database)
    many = [a_job(payload=f'{{"n": {n}}}') for n in range(3 * FULL)]
    stored = await asyncio.gather(*(together.submit(job, ACTOR) for job in many))
    assert [job.id for job in stored] == [job.id for job in many]
    assert [job.payload for job in stored] == [{"n": n} for n in range(len(many))]
    assert {job.status for job in stored} == {Status.APPROVED}
    with psycopg.connect(dsn) as conn:
        commits = conn.execute("select count(distinct xmin::text) from laneway.jobs").fetchone()
        audit_entries = conn.execute(
            "select count(distinct name), count(*) from laneway.audit"
            " where action = 'job.submitted' and request_id = 'r1' and address = '127.0.0.1'"
        ).fetchone()
    assert commits is not None
    assert commits[0] <= len(many) / FULL + AT_ONCE
    assert audit_entries == (len(many), len(many))


async def test_one_that_is_refused_takes_no_other_along(database: Database) -> None:
    together = GroupCommit(database)
    good = [a_job() for _ in range(4)]
    answers = await asyncio.gather(
        together.submit(good[0], ACTOR),
        together.submit(a_job(priority=40_000), ACTOR),
        *(together.submit(job, ACTOR) for job in good[1:]),
        return_exceptions=True,
    )
    refused = answers.pop(1)
    assert isinstance(refused, InvalidInput)
    assert refused.field == "priority"
    assert [job.id for job in answers] == [job.id for job in good]  # type: ignore[union-attr]


async def test_one_that_postgresql_aborts_takes_no_other_along(
    database: Database, dsn: str
) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(
            "create function laneway.abort_odd() returns trigger language plpgsql as $$"
            " begin raise exception using errcode = '40P01', message = 'deadlock detected'; end $$;"
            " create trigger abort_odd before insert on laneway.jobs for each row"
            " when (new.job_type = 'odd') execute function laneway.abort_odd()"
        )
        try:
            together = GroupCommit(database)
            jobs = [a_job(), a_job(job_type="odd"), a_job(), a_job()]
            answers = await asyncio.gather(
                *(together.submit(job, ACTOR) for job in jobs), return_exceptions=True
            )
        finally:
            conn.execute("drop function laneway.abort_odd() cascade")
    assert isinstance(answers.pop(1), DatabaseUnavailable)
    assert [job.id for job in answers] == [jobs[0].id, jobs[2].id, jobs[3].id]  # type: ignore[union-attr]


async def test_request_that_is_given_up_leaves_the_others_their_answers(
    database: Database,
) -> None:
    together = GroupCommit(database)
    impatient = asyncio.create_task(together.submit(a_job(), ACTOR))
    patient = asyncio.create_task(together.submit(a_job(), ACTOR))
    await asyncio.sleep(0)
    impatient.cancel()
    assert (await patient).status is Status.APPROVED
    await together.close()


async def test_each_caller_of_batch_gets_database_unavailable(unused_tcp_port: int) -> None:
    dsn = f"host=127.0.0.1 port={unused_tcp_port} dbname=nowhere"
    together = GroupCommit(Database(dsn, Settings.load(database_url=dsn)))
    answers = await asyncio.gather(
        *(together.submit(a_job(), ACTOR) for _ in range(3)), return_exceptions=True
    )
    assert [type(answer) for answer in answers] == [DatabaseUnavailable] * 3


class Broken(Database):
    """An internal error before anything is sent."""

    async def run(self, statement: Statement[T]) -> T:
        raise RuntimeError("ours")


async def test_internal_error_reaches_each_caller_exactly_once(dsn: str) -> None:
    odd: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: odd.append(context))
    together = GroupCommit(Broken(dsn, Settings.load(database_url=dsn)))
    many = (together.submit(a_job(), ACTOR) for _ in range(2 * FULL + 1))
    answers = await asyncio.gather(*many, return_exceptions=True)
    assert [type(answer) for answer in answers] == [RuntimeError] * (2 * FULL + 1)
    await together.close()
    del answers, together
    gc.collect()
    await asyncio.sleep(0)
    assert odd == []


async def test_commit_bears_the_name_of_no_request(dsn: str) -> None:
    seen: list[str | None] = []

    class Asked(Database):
        async def run(self, statement: Statement[T]) -> T:
            seen.append(request_id.get())
            await asyncio.sleep(0)
            seen.append(request_id.get())
            return await super().run(statement)

    database = Asked(dsn, Settings.load(database_url=dsn), size=AT_ONCE)
    together = GroupCommit(database)
    token = request_id.set("r1")
    for count in (1, FULL, 3 * FULL):
        await asyncio.gather(*(together.submit(a_job(), ACTOR) for _ in range(count)))
    request_id.reset(token)
    assert set(seen) == {None}
    await database.close()


async def test_principal_at_its_bound_is_kept_out_of_the_commits_of_others(
    database: Database, factory: JobFactory
) -> None:
    """A refusal rolls back the shared commit of all."""
    together = GroupCommit(database)
    full = Quota(uuid4(), Bounds(max_queued=0))
    ours = Actor("ann", principal_id=full.principal_id)
    with pytest.raises(QuotaExceeded, match="max_queued"):
        await together.submit(a_job(), ours, full)
    refused, *stored = await asyncio.gather(
        together.submit(a_job(), ours, full),
        *(together.submit(a_job(), ACTOR) for _ in range(5)),
        return_exceptions=True,
    )
    assert isinstance(refused, QuotaExceeded)
    assert all(isinstance(each, Job) for each in stored)
    commits = factory.conn.execute("select count(distinct xmin::text) from laneway.jobs").fetchone()
    assert commits == (1,)
