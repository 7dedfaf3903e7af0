"""A held snapshot keeps dead rows: the cost of a job must not grow with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from laneway.domain.actor import Actor
from laneway.domain.bounds import USUAL
from laneway.domain.claim import Claim
from laneway.domain.job import NewJob, new_job_id
from laneway.store import grouped_submit, lanes, leases, workers
from laneway.store.leases import MAX_RANK, MIN_RANK, Range, Verdict
from laneway.store.quotas import Quota
from laneway.store.statement import Statement
from tests.support.store_client import StoreClient

pytestmark = pytest.mark.usefixtures("new_sessions")

FEW = 100
MANY = 2000
# One job after the other, each claimed and ended alone; claims look above the floor.
RUN = """
do $$
declare
    v_worker uuid := '{worker}';
    v_floor bigint := coalesce((select max(seq) from laneway.jobs), 0);
    c record;
begin
    for i in 1 .. {count} loop
        perform laneway.submit('t', '{{}}');
        select * into strict c from laneway.claim(
            v_worker, 'default', (select version from laneway.control), 1,
            array['t', 't'], array[1, 1], array[false, true],
            array[-32768, 0], array[0, v_floor], array[32768, 32768], array[10]);
        v_floor := c.seqs[1];
        perform laneway.settle(c.seqs, c.attempts, array['finish'], null, null, null, null);
        commit;
    end loop;
end $$
"""
KINDS = {
    "plain": "",
    "bounded": "update laneway.worker_lanes set max_slots = 5 where name = 'default'",
    "limited": """
        insert into laneway.limits (name, max_concurrent) values ('few', 5);
        update laneway.job_types set limits = '{few}' where name = 't'""",
    "rated": """
        insert into laneway.limits (name, max_concurrent, rate_count, rate_period_s)
        values ('few', 5, 100000, 0.1);
        update laneway.job_types set limits = '{few}' where name = 't'""",
    "of one host": """
        insert into laneway.limits (name, max_concurrent, scope) values ('few', 5, 'host');
        update laneway.job_types set limits = '{few}' where name = 't'""",
}


@pytest.fixture
def held_snapshot(dsn: str) -> Iterator[None]:
    with psycopg.connect(dsn) as holder:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("select from laneway.control")
        yield


def blocks(db: StoreClient, statement: Statement[Any]) -> int:
    """The number of pages that a statement reads, with the functions that it calls."""
    text = f"explain (analyze, buffers, format json) {statement.text}"
    rows = db.conn.execute(text.encode(), statement.params).fetchall()
    (top,) = rows[0][0]
    return int(top["Plan"]["Shared Hit Blocks"] + top["Plan"]["Shared Read Blocks"])


def cost(db: StoreClient) -> dict[str, int]:
    """The cost of one more job, and of reading the rows."""
    floor = db.one("select max(seq) from laneway.jobs")
    ranges = [
        Range("t", 1, False, MIN_RANK, 0, MAX_RANK),
        Range("t", 1, True, 0, floor, MAX_RANK),
    ]
    seq = db.submit("t")
    return {
        "peek": blocks(db, lanes.peek([], ranges)),
        "claim": blocks(db, leases.claim(db.worker, "default", db.version(), 1, ranges, [10])),
        "settle": blocks(db, leases.settle([Verdict(Claim(seq, db.id_of(seq), 1), "finish")])),
        "workers": blocks(db, workers.listing()),
    }


def least_cost(db: StoreClient) -> dict[str, int]:
    """The least of a few runs: the first also reads the catalog."""
    costs = [cost(db) for _ in range(5)]
    return {name: min(one[name] for one in costs) for name in costs[0]}


@pytest.mark.parametrize("kind", KINDS)
def test_job_costs_the_same_however_many_dead_rows_there_are(
    db: StoreClient, held_snapshot: None, kind: str
) -> None:
    db.do("insert into laneway.job_types (name) values ('t')")
    db.do(
        "insert into laneway.workers (id, name, host, pid, code, job_types, concurrency)"
        " values (%s, 'w', 'h', 1, '0', '{t}', 1)",
        db.worker,
    )
    if KINDS[kind]:
        db.do(KINDS[kind])
    db.do(RUN.format(worker=db.worker, count=FEW))
    before = least_cost(db)
    db.do(RUN.format(worker=db.worker, count=MANY))
    db.do("analyze")
    after = least_cost(db)
    grown = [name for name in after if after[name] > 1.3 * before[name] + 8]
    assert not grown, (grown, before, after)


# One request after the other of a principal with a quota.
SUBMITS = """
do $$
begin
    for i in 1 .. {count} loop
        perform laneway.submit_requests(jsonb_build_array(jsonb_build_object(
            'id', gen_random_uuid(), 'job_type', 't', 'payload', '{{}}'::jsonb, 'bytes', 2,
            'workspace', 'default', 'actor', 'ann', 'door', 'http', 'principal', '{principal}',
            'max_queued', 100000, 'max_bytes', 1000000000, 'max_types', 100)));
        commit;
    end loop;
end $$
"""


def test_submit_under_a_bound_costs_the_same_however_many_dead_rows_there_are(
    db: StoreClient, held_snapshot: None
) -> None:
    quota = Quota(uuid4(), USUAL)
    actor = Actor("ann", principal_id=quota.principal_id)

    def least() -> int:
        return min(
            blocks(
                db,
                grouped_submit.submit([(NewJob(id=new_job_id(), job_type="t"), actor, quota)]),
            )
            for _ in range(5)
        )

    db.do(SUBMITS.format(principal=quota.principal_id, count=FEW))
    before = least()
    db.do(SUBMITS.format(principal=quota.principal_id, count=MANY))
    db.do("analyze")
    after = least()
    assert after <= 1.5 * before + 8, (before, after)


# Two lanes of one worker that want the same limit of 1. Each claim is 30 ms after the one before.
LANES = """
insert into laneway.limits (name, max_concurrent) values ('narrow', 1);
insert into laneway.job_types (name, limits) values ('low', '{narrow}'), ('high', '{narrow}');
insert into laneway.worker_lanes (name, job_types) values ('low', '{low}'), ('high', '{high}');
create temporary sequence ticks;
create function pg_temp.claim(p_lane text, p_floor bigint) returns bigint
language sql volatile as $$
    select c.seqs[1] from laneway.claim(
        '00000000-0000-0000-0000-000000000001', p_lane, (select version from laneway.control), 1,
        array[p_lane, p_lane], array[1, 1], array[false, true],
        array[-32768, 0], array[0, p_floor], array[32768, 32768], array[10],
        timestamptz '2100-01-01' + nextval('ticks') * interval '30 ms') c $$;
create function pg_temp.finish(p_seq bigint) returns void language sql volatile as $$
    select laneway.settle(array[p_seq], array[1], array['finish'], null, null, null, null) $$
"""
# Both lanes are served in each round.
ROUNDS = """
do $$
declare
    v_low bigint := coalesce(
        (select min(seq) - 1 from laneway.ready), (select max(seq) from laneway.jobs), 0);
    v_high bigint := v_low;
begin
    for i in 1 .. {count} loop
        perform laneway.submit(t, '{{}}') from unnest('{{low, high}}'::text[]) t;
        v_low := pg_temp.claim('low', v_low);
        assert pg_temp.claim('high', v_high) is null;
        perform pg_temp.finish(v_low);
        -- This lane leaves the room to the other, which has waited; or it has no more jobs.
        assert pg_temp.claim('low', v_low) is null;
        v_high := pg_temp.claim('high', v_high);
        assert pg_temp.claim('low', v_low) is null;
        assert v_low is not null and v_high is not null;
        perform pg_temp.finish(v_high);
        assert pg_temp.claim('high', v_high) is null;
        commit;
    end loop;
end $$
"""


def cost_of_turns(db: StoreClient) -> dict[str, int]:
    """The cost of the calls of a round."""
    for job_type in ("low", "high"):
        db.submit(job_type)
    floor = db.one("select min(seq) - 1 from laneway.ready")
    costs = {}

    def measure(name: str, call: str, *params: Any) -> None:
        # A slow machine would skip a waiter that was called long ago, and read less.
        db.do("update laneway.limit_turns set called_at = null where called_at is not null")
        (top,) = db.one(f"explain (analyze, buffers, format json) select {call}", *params)
        plan = top["Plan"]
        costs[name] = int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])

    def claim(name: str, lane: str) -> None:
        measure(name, "pg_temp.claim(%s, %s)", lane, floor)

    def finish() -> None:
        measure("finish", "pg_temp.finish(%s)", db.one("select seq from laneway.lease"))

    claim("first", "low")
    claim("refused", "high")
    finish()
    claim("left", "low")
    claim("in turn", "high")
    measure("next in line", "laneway.next_in_turn('narrow')")
    claim("refused again", "low")
    finish()
    claim("left again", "high")
    return costs


@pytest.mark.parametrize("backlog", [0, 4], ids=["come and go", "stay"])
def test_turns_at_a_limit_cost_the_same_however_many_dead_rows_there_are(
    db: StoreClient, held_snapshot: None, backlog: int
) -> None:
    def least() -> dict[str, int]:
        found = [cost_of_turns(db) for _ in range(5)]
        return {name: min(one[name] for one in found) for name in found[0]}

    db.do(LANES)
    for _ in range(backlog):
        db.do("select laneway.submit(t, '{}') from unnest('{low, high}'::text[]) t")
    # A start counts for a lane's turn once another lane waits.
    for lane in ("low", "high", "low", "high"):
        db.do("select pg_temp.claim(%s, 0)", lane)
        db.do("select pg_temp.finish(seq) from laneway.lease where lane = %s", lane)
    db.do(ROUNDS.format(count=FEW))
    before = least()
    db.do(ROUNDS.format(count=MANY // 4))
    # As autovacuum does at any moment: statistics that count dead rows must not change a plan.
    db.do("analyze")
    after = least()
    grown = [name for name in after if after[name] > 1.3 * before[name] + 8]
    assert not grown, f"{grown}: {before} -> {after}"
