"""Batches by COPY: the same rows as single submits, all or none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laneway.client import Client, JobOptions, NewJobSpec
from laneway.client.client import Client as RealClient
from laneway.config.settings import Settings
from laneway.domain.states import Status
from laneway.errors import InvalidInput
from laneway.store import unique_keys
from laneway.store.database import Database
from tests.support.store_client import StoreClient


def rows(db: StoreClient, table: str) -> list[tuple[Any, ...]]:
    return db.rows(f"select * from laneway.{table} order by seq")


async def test_batch_returns_and_claims_jobs_in_given_order(
    client: Client, db: StoreClient
) -> None:
    made = await client.submit_many(("t", {"n": n}) for n in range(250))
    assert [job.status for job in made] == [Status.APPROVED] * 250
    claimed = db.claim(room=1000).assignments
    assert [a.claim.job_id for a in claimed] == [job.id for job in made]
    assert [a.payload for a in claimed] == [f'{{"n": {n}}}' for n in range(250)]


async def test_every_column_of_a_batch_is_as_submit_writes_it(
    client: Client, db: StoreClient
) -> None:
    """Compare every column, so that a new column cannot be missed in one of the two."""
    options: dict[str, Any] = {"priority": 3, "tags": ["a"], "created_by": "me", "max_retries": 2}
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "ready"),
        ({"delay": 90}, "delayed"),
        ({"delay": 0}, "ready"),
    ]
    for extra, place in cases:
        one = await client.submit("t", {"x": 1}, **options, **extra, unique_key=f"1{extra}")
        (other,) = await client.submit_many(
            [NewJobSpec("t", {"x": 1}, **options, **extra, unique_key=f"2{extra}")]
        )
        for table in ("jobs", place):
            left = db.row(table, db.seq_of(one.id))
            right = db.row(table, db.seq_of(other.id))
            own = {"seq", "id", "unique_key", "created_at", "ready_at", "run_at"}
            assert {k: v for k, v in left.items() if k not in own} == {
                k: v for k, v in right.items() if k not in own
            }
            for name in own & left.keys():
                assert (left[name] is None) == (right[name] is None), name
        job = db.row("jobs", db.seq_of(other.id))
        waiting = db.row(place, db.seq_of(other.id))
        if place == "ready":
            assert waiting["ready_at"] == job["created_at"]
        else:
            assert waiting["run_at"] == job["run_at"]
            assert (job["run_at"] - job["created_at"]).total_seconds() == 90
        assert db.one("select seq from laneway.job_keys where unique_key = %s", f"2{extra}")
        assert (
            abs(db.one("select extract(epoch from clock_timestamp() - %s)", job["created_at"])) < 60
        )


@pytest.mark.parametrize(
    "jobs",
    [
        [("t",), ("t", None), ("t", {})],
        [{"job_type": "t"}, {"job_type": "t", "payload": {}}, NewJobSpec("t")],
        [("t", {}, {}), ("t", None, {"priority": None}), NewJobSpec("t", {}, tags=[])],
    ],
)
async def test_jobs_are_given_as_tuples_mappings_or_specs(
    client: Client, db: StoreClient, jobs: list[Any]
) -> None:
    made = await client.submit_many(jobs)
    assert [(await job.get()).payload for job in made] == [{}, {}, {}]


@pytest.mark.parametrize(
    "jobs, field",
    [
        (["t"], "jobs[0]"),
        ([("t",), ()], "jobs[1]"),
        ([("t", {}, {}, {})], "jobs[0]"),
        ([("t", {}, None)], "jobs[0]"),
        ([{"payload": {}}], "jobs[0]"),
        ([{"job_type": "t", "prioritee": 1}], "jobs[0]"),
        ([("t", {}, {"payload": 1})], "jobs[0]"),
        ([5], "jobs[0]"),
        ("t", "jobs"),
        ({"job_type": "t"}, "jobs"),
    ],
)
async def test_invalid_job_in_batch_is_refused_by_index(
    client: Client, jobs: Any, field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await client.submit_many(jobs)
    assert refused.value.field == field


async def test_empty_batch_does_nothing(client: Client) -> None:
    assert await client.submit_many([]) == []


# -- keys ---------------------------------------------------------------------------------------


async def test_keys_in_a_batch_are_kept_apart_by_workspace_type_and_key(
    client: Client, db: StoreClient
) -> None:
    live = await client.submit("t", {"n": 0}, unique_key="live")
    key: JobOptions = {"unique_key": "k"}
    made = await client.submit_many(
        [
            ("t", {"n": 1}, key),
            ("t", {"n": 2}, {"unique_key": "live"}),
            ("t", {"n": 3}, key),
            ("u", {"n": 4}, key),
            ("t", {"n": 5}, {**key, "workspace": "w"}),
            ("t", {"n": 6}),
            ("t", {"n": 7}, {"unique_key": "live"}),
        ]
    )
    assert [job.duplicate for job in made] == [False, True, True, False, False, False, True]
    assert [made[1].id, made[6].id, made[2].id] == [live.id, live.id, made[0].id]
    assert len({job.id for job in made}) == 5
    assert db.one("select array_agg(payload -> 'n' order by seq) from laneway.jobs") == [
        0, 1, 4, 5, 6,
    ]  # fmt: skip
    assert db.one("select count(*) from laneway.ready") == 5


async def test_batch_of_nothing_but_duplicates_stores_nothing(
    client: Client, db: StoreClient
) -> None:
    first = await client.submit("t", unique_key="k")
    (claim,) = db.claimed()
    made = await client.submit_many([("t", {}, {"unique_key": "k"})] * 3)
    assert {(job.id, job.duplicate, job.status) for job in made} == {
        (first.id, True, Status.RUNNING)
    }
    assert db.one("select count(*) from laneway.jobs") == 1
    db.settle(claim, "finish")


async def test_batches_with_the_same_keys_in_any_order_do_not_deadlock(
    client: Client, db: StoreClient
) -> None:
    keys = [f"k{n}" for n in range(50)]
    batches: list[list[Any]] = [
        [("t", {}, {"unique_key": k}) for k in order] for order in (keys, keys[::-1]) * 3
    ]
    answers = await asyncio.gather(*(client.submit_many(batch) for batch in batches))
    assert db.one("select count(*) from laneway.jobs") == 50
    assert len({job.id for made in answers for job in made}) == 50
    assert sum(not job.duplicate for made in answers for job in made) == 50


async def test_key_whose_holder_ends_meanwhile_is_taken(
    client: Client, db: StoreClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await client.submit("t", unique_key="k")
    real = unique_keys.find

    def ended_first(new: Any) -> Any:
        if db.places(db.seq_of(first.id)) == ["ready"]:
            db.cancel(db.seq_of(first.id))
        return real(new)

    monkeypatch.setattr(unique_keys, "find", ended_first)
    (job,) = await client.submit_many([("t", {}, {"unique_key": "k"})])
    assert not job.duplicate
    assert job.id != first.id


# -- limits -------------------------------------------------------------------------------------


async def test_thousand_jobs_are_a_batch_and_one_more_is_not(
    client: Client, db: StoreClient
) -> None:
    assert len(await client.submit_many([("t", {})] * 1000)) == 1000
    with pytest.raises(InvalidInput, match="at most 1000 jobs"):
        await client.submit_many([("t", {})] * 1001)
    endless: Iterator[tuple[str, dict[str, int]]] = (("t", {"n": n}) for n in count())
    with pytest.raises(InvalidInput, match="at most 1000 jobs"):
        await client.submit_many(endless)
    assert db.one("select count(*) from laneway.jobs") == 1000


async def test_batch_holds_sixteen_megabytes(client: Client, db: StoreClient) -> None:
    big = {"x": "ü" * (512 * 1024 - 10)}
    with pytest.raises(InvalidInput, match="at most 16777216 bytes"):
        await client.submit_many([("t", big)] * 17)
    assert db.one("select count(*) from laneway.jobs") == 0


@pytest.mark.parametrize("position", [0, 5, 249, 250, 299])
async def test_one_wrong_job_refuses_the_whole_batch(
    client: Client, db: StoreClient, position: int
) -> None:
    jobs: list[Any] = [("t", {"n": n}) for n in range(300)]
    jobs[position] = ("t", {"n": "\x00"})
    with pytest.raises(InvalidInput, match=rf"jobs\[{position}\]\.payload\.n: .*NUL"):
        await client.submit_many(jobs)
    for table in ("jobs", "ready", "delayed"):
        assert db.one(f"select count(*) from laneway.{table}") == 0
    assert len(await client.submit_many(jobs[:position] + jobs[position + 1 :])) == 299


# -- escaping -----------------------------------------------------------------------------------

letters = st.characters(exclude_characters="\x00", exclude_categories=["Cs"]) | st.sampled_from(
    "\\\t\n\r\b\f\v\"'{},N.\x7f\u2028"
)
texts = st.text(letters, max_size=30)
names = st.text(letters, min_size=1, max_size=30)
printable = st.characters(exclude_categories=["C", "Z"]) | st.sampled_from("\\\"'{},N.")
specs = st.builds(
    NewJobSpec,
    job_type=st.text(printable, min_size=1, max_size=30),
    payload=st.recursive(texts | st.integers(-(2**63), 2**63), st.lists, max_leaves=4)
    | st.dictionaries(texts, texts, max_size=3),
    workspace=names,
    tags=st.lists(names, max_size=3),
    created_by=st.none() | names.filter(lambda name: name == name.strip()),
    priority=st.none() | st.integers(-32768, 32767),
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(batch=st.lists(specs, min_size=1, max_size=8))
def test_any_text_in_batch_is_read_back_unchanged(
    plain_client: Client, db: StoreClient, batch: list[NewJobSpec]
) -> None:
    made = plain_client.sync.submit_many(batch)
    stored = db.rows(
        "select job_type, payload, workspace, coalesce(tags, '{}'), created_by, priority"
        " from laneway.jobs where id = any (%s) order by seq",
        [job.id for job in made],
    )
    assert stored == [
        (s.job_type, s.payload, s.workspace, list(s.tags), s.created_by, s.priority or 0)
        for s in batch
    ]


# -- without COPY -------------------------------------------------------------------------------


async def test_batch_through_two_clients_is_numbered_without_a_clash(
    dsn: str, client: Client, settings: Settings, db: StoreClient
) -> None:
    other = RealClient(Database(dsn, settings), settings)
    jobs = [("t", {"n": n}) for n in range(100)]
    await asyncio.gather(*(who.submit_many(jobs) for who in (client, other) * 3))
    assert db.one("select count(distinct seq) from laneway.ready") == 600
    await other.close()
    await other.database.close()


async def test_callers_statement_timeout_or_lock_does_not_leave_half_a_batch(
    client: Client, dsn: str, db: StoreClient
) -> None:
    db.do("begin")
    db.do("lock table laneway.ready")
    with psycopg.connect(dsn, options="-c lock_timeout=50") as conn:
        with pytest.raises(psycopg.errors.LockNotAvailable):
            await client.submit_many([("t", {})], conn=conn)
        conn.rollback()
    db.do("rollback")
    assert db.one("select count(*) from laneway.jobs") == 0
