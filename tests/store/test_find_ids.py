"""A job is found by a prefix of its id at the same cost among few jobs and many."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest

from laneway.domain.job_id import MOST_IDS, MOST_PREFIXES, IdPrefix
from laneway.domain.permissions import Reach, Term
from laneway.store import job_ids
from tests.store.test_plans import SAY_EMPTY, spent
from tests.support.store_client import StoreClient

MANY = 100_000
# Ids as the clock makes them: all share their first digits.
FILL = f"""
insert into laneway.jobs (seq, id, job_type, payload, created_by)
select g, ('019a' || lpad(to_hex(g), 28, '0'))::uuid, 'greet', '{{}}',
       case when g = 1 then 'eve' when g = {MANY} then 'ann' else 'bob' end
  from generate_series(1, {MANY}) g
"""
FIRST = UUID("019a" + "1".rjust(28, "0"))
LAST = UUID("019a" + format(MANY, "x").rjust(28, "0"))
OWN = Reach((Term(owner="ann"),))


@pytest.fixture(scope="module", params=["never analysed", "statistics of empty tables"])
def filled(module_dsn: str, request: pytest.FixtureRequest) -> Iterator[StoreClient]:
    with StoreClient(module_dsn) as db:
        db.do("alter table laneway.jobs set (autovacuum_enabled = off)")
        db.do("truncate laneway.jobs")
        db.do(FILL)
        if request.param == "statistics of empty tables":
            db.do(SAY_EMPTY)
        yield db


@pytest.mark.parametrize("prefix", ["019a", LAST.hex[:30], "ffff"])
def test_lookup_reads_bounded_rows_by_the_index_of_ids(filled: StoreClient, prefix: str) -> None:
    everything = job_ids.find([IdPrefix(prefix)])
    assert spent(filled, lambda: filled.run(everything))["jobs"] <= MOST_IDS + 2
    own = job_ids.find([IdPrefix(prefix)], within=OWN)
    assert spent(filled, lambda: filled.run(own))["jobs"] <= 2 * job_ids.SCANNED + 2


def test_plan_uses_the_index_of_ids(filled: StoreClient) -> None:
    with filled.conn.transaction():
        filled.do("set local enable_seqscan = off")
        filled.do("set local enable_sort = off")
        filled.do("set local enable_bitmapscan = off")
        plan = "\n".join(
            row[0]
            for row in filled.rows(
                "explain select seq, id from laneway.jobs where id between %s and %s"
                " order by id limit 6",
                *IdPrefix("019a").range,
            )
        )
    assert "using jobs_id" in plan
    assert "Sort" not in plan


def test_prefixes_are_answered_in_order_and_up_to_a_bound(filled: StoreClient) -> None:
    unknown, one, many = filled.run(
        job_ids.find([IdPrefix("ffff"), IdPrefix(LAST.hex[:31]), IdPrefix("019a")])
    )
    assert (unknown.ids, unknown.is_more) == ((), False)
    assert LAST in one.ids
    assert (len(many.ids), many.is_more) == (MOST_IDS, True)
    assert list(many.ids) == sorted(many.ids)


def test_only_jobs_in_reach_are_found(filled: StoreClient) -> None:
    (own,) = filled.run(job_ids.find([IdPrefix(LAST.hex[:30])], within=OWN))
    assert own.only == LAST
    # Too many jobs share this prefix to examine them all; that others have them is not revealed.
    (wide,) = filled.run(job_ids.find([IdPrefix("019a")], within=OWN))
    assert (wide.ids, wide.is_more) == ((), False)
    # With a job in reach, it is not taken for the only one.
    eves = Reach((Term(owner="eve"),))
    (cut,) = filled.run(job_ids.find([IdPrefix("019a")], within=eves))
    assert (cut.ids, cut.is_more) == ((FIRST,), True)


def test_one_request_examines_bounded_jobs_for_all_its_prefixes(filled: StoreClient) -> None:
    own = job_ids.find([IdPrefix("019a")] * MOST_PREFIXES, within=OWN)
    assert spent(filled, lambda: filled.run(own))["jobs"] <= 2 * job_ids.SCANNED + 2


def test_end_tells_jobs_of_one_prefix_apart(filled: StoreClient) -> None:
    head = LAST.hex[:29]
    (found,) = filled.run(job_ids.find([IdPrefix(head, LAST.hex[-3:])]))
    assert found.only == LAST
    (none,) = filled.run(job_ids.find([IdPrefix(head, "fff")]))
    assert (none.ids, none.is_more) == ((), False)
    wide = job_ids.find([IdPrefix("019a", LAST.hex[-3:])])
    assert spent(filled, lambda: filled.run(wide))["jobs"] <= job_ids.SCANNED + 2
    assert filled.run(wide)[0].is_more


def test_end_of_one_prefix_does_not_make_the_others_costly(filled: StoreClient) -> None:
    prefixes = [IdPrefix("019a", "fff"), *([IdPrefix("019a")] * 99)]
    wide = job_ids.find(prefixes)
    assert spent(filled, lambda: filled.run(wide))["jobs"] <= job_ids.SCANNED + 100 * (MOST_IDS + 2)
    first, *others = filled.run(wide)
    assert (first.ids, first.is_more) == ((), True)
    assert all((len(each.ids), each.is_more) == (MOST_IDS, True) for each in others)


def test_end_among_jobs_in_reach_reports_that_not_all_were_examined(
    filled: StoreClient,
) -> None:
    bobs = Reach((Term(owner="bob"),))
    (wide,) = filled.run(job_ids.find([IdPrefix("019a", "fff0")], within=bobs))
    assert (wide.ids, wide.is_more) == ((), True)
    (others,) = filled.run(job_ids.find([IdPrefix("019a", "fff0")], within=OWN))
    assert (others.ids, others.is_more) == ((), False)
