"""A claim with `origins` returns the origin of each job."""

from __future__ import annotations

from laneway.store import leases
from laneway.store.leases import ClaimAnswer
from tests.support.store_client import StoreClient, whole

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def claim(db: StoreClient, room: int = 10) -> ClaimAnswer:
    return db.run(
        leases.claim(db.worker, "default", db.version(), room, whole("t"), [room], origins=True)
    )


def test_each_job_comes_with_its_own_wait_and_trace(db: StoreClient) -> None:
    late = db.submit(priority=1)
    traced = db.submit(traceparent=TRACE, priority=2)
    again = db.submit(priority=3)
    db.settle(db.claimed(1)[0], "fail", delay_s=0.0)
    parked = [db.submit(concurrency_key="k", priority=4) for _ in range(2)]
    db.do(
        "update laneway.jobs set created_at = created_at - interval '1 hour',"
        " run_at = clock_timestamp() - interval '10 minutes' where seq = %s",
        late,
    )
    answer = claim(db)
    origins = {one.claim.seq: (one.waited_s, one.traceparent) for one in answer.assignments}
    # Of two with one key one runs; the other must not shift the origins of the rest.
    assert origins.keys() == {parked[0], again, traced, late}
    assert origins[again] == (None, None)
    assert origins[traced][1] == TRACE
    assert 600 <= (origins[late][0] or 0) < 660
    assert 0 <= (origins[traced][0] or 0) < 60


def test_empty_claim_returns_nothing(db: StoreClient) -> None:
    assert claim(db).assignments == []
    db.submit()
    (plain,) = db.claim().assignments
    assert (plain.waited_s, plain.traceparent) == (None, None)
