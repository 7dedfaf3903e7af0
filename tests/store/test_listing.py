"""Lists and the view agree with the tables."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from laneway.domain.approval import Approval
from laneway.domain.filter import JobFilter
from laneway.domain.job import Job
from laneway.domain.permissions import Reach, Term
from laneway.domain.states import Status
from laneway.store import jobs
from laneway.store.jobs import VIEW_COLUMNS
from laneway.store.leases import Report
from tests.store.approvals import approve, publish
from tests.support.store_client import StoreClient, error

TAGS: list[tuple[str, ...]] = [(), ("x",), ("x", "y")]
CONTRACT = {
    "id", "job_type", "lane", "status", "priority", "payload", "result", "error", "progress",
    "checkpoint", "analysis", "attempt", "retries", "max_retries", "workspace", "tags",
    "unique_key", "created_at", "created_by", "approved_at", "approved_by", "expires_at",
    "run_at", "claimed_by", "worker", "claimed_at", "lease_until", "last_progress_at",
    "cancel_requested_at", "started_at", "finished_at",
}  # fmt: skip


@pytest.fixture
def many(db: StoreClient) -> dict[int, dict[str, Any]]:
    """Submit some ninety jobs in every status; return their arguments."""
    rng = random.Random(3)
    made: dict[int, dict[str, Any]] = {}
    for i in range(90):
        job_type = rng.choice(["t", "u", "polarity"])
        more: dict[str, Any] = {
            "workspace": rng.choice(["default", "w"]),
            "tags": rng.choice(TAGS),
            "delay": rng.choice([None, None, None, 3600.0]),
            "priority": rng.randint(-3, 3),
        }
        made[db.submit(job_type, payload={"i": i}, **more)] = {"job_type": job_type, **more}
    db.do("update laneway.worker_lanes set max_slots = null")
    for claim in db.claimed(25, ["t", "u"]) + db.claimed(15, ["polarity"], lane="interactive"):
        kind = rng.choice(["finish", "giveup", "release", "cancel", "running", "running"])
        if kind == "running":
            db.report([Report(claim, done=1, total=4)])
        else:
            db.settle(claim, kind, error=error(), result="[1]")
    return made


def status_of(db: StoreClient, seq: int) -> str:
    (place,) = db.places(seq)
    if place == "outcome":
        return str(db.row("outcome", seq)["status"])
    return "running" if place == "lease" else "approved"


def page_through(
    db: StoreClient, wanted: JobFilter, limit: int, scan: int = jobs.SCAN
) -> list[Job]:
    found: list[Job] = []
    before: int | None = None
    while True:
        page = db.run(jobs.listing(wanted, limit=limit, before=before, scan=scan))
        assert len(page.items) <= limit
        found += page.items
        if page.next_cursor is None:
            return found
        before = page.next_cursor


FILTERS = [
    JobFilter(),
    *(JobFilter(status=s) for s in Status),
    *(JobFilter(status=s, workspace="w", job_type="t") for s in (None, *Status)),
    *(JobFilter(status=s, lane="interactive") for s in (None, *Status)),
    *(JobFilter(status=s, tag="y") for s in (None, *Status)),
]


def test_every_filter_and_page_agrees_with_the_tables(
    db: StoreClient, many: dict[int, dict[str, Any]]
) -> None:
    statuses = {seq: status_of(db, seq) for seq in many}
    assert set(statuses.values()) == {"approved", "running", "completed", "failed", "cancelled"}
    for wanted in FILTERS:
        expected = [
            seq
            for seq, made in sorted(many.items(), reverse=True)
            if wanted.status in (None, statuses[seq])
            and wanted.job_type in (None, made["job_type"])
            and wanted.workspace in (None, made["workspace"])
            and (wanted.lane is None or made["job_type"] == "polarity")
            and (wanted.tag is None or wanted.tag in made["tags"])
        ]
        for limit in (7, 50, 200):
            found = page_through(db, wanted, limit)
            assert [job.payload for job in found] == [{"i": list(many).index(s)} for s in expected]
            assert all(job.status == statuses[s] for job, s in zip(found, expected, strict=True))


def test_search_by_error_agrees_with_the_jobs(
    db: StoreClient, many: dict[int, dict[str, Any]]
) -> None:
    # As from a version that did not store the type apart.
    db.do("update laneway.outcome set error_type = null where mod(seq, 2) = 0")
    db.do(
        """update laneway.outcome set error_type = 'Other', error = '{"type": "Other"}'"""
        " where mod(seq, 5) = 0 and status <> 'completed'"
    )
    db.do("update laneway.jobs set created_by = 'ann' where mod(seq, 3) = 0")
    own = Reach((Term(owner="ann"),))
    for status in (None, Status.FAILED, Status.CANCELLED):
        for within in (None, *REACHES, own):
            for job_type in (None, "t"):
                wanted = JobFilter(status=status or Status.FAILED, within=within, job_type=job_type)
                every = page_through(db, wanted, 200)
                for error_type in ("Boom", "Other", "Absent"):
                    expected = [j.id for j in every if j.error and j.error.type == error_type]
                    asked = replace(wanted, status=status, error_type=error_type)
                    for limit, scan in ((200, jobs.SCAN), (7, jobs.SCAN), (50, 1)):
                        found = page_through(db, asked, limit, scan)
                        assert [job.id for job in found] == expected, asked


def test_search_by_end_agrees_with_the_jobs(
    db: StoreClient, many: dict[int, dict[str, Any]]
) -> None:
    """The end, not the submit: jobs that were submitted long ago may have just ended."""
    db.do("update laneway.jobs set created_at = now() - interval '2 days'")
    db.do("update laneway.jobs set created_by = 'ann' where mod(seq, 3) = 0")
    db.do("update laneway.outcome set finished_at = now() - mod(seq, 3) * interval '1 day'")
    since = db.one("select now() - interval '36 hours'")
    own = Reach((Term(owner="ann"),))
    for status in (None, Status.COMPLETED, Status.FAILED):
        for within in (None, *REACHES, own):
            wanted = JobFilter(status=status, within=within)
            every = page_through(db, wanted, 200)
            expected = [j.id for j in every if j.finished_at and j.finished_at >= since]
            for more in ({"ended_since": since}, {"ended_within": 36 * 3600.0}):
                asked = replace(wanted, **more)
                for limit, scan in ((200, jobs.SCAN), (7, jobs.SCAN), (50, 1)):
                    found = page_through(db, asked, limit, scan)
                    assert [job.id for job in found] == expected, asked


def test_search_by_approval_agrees_with_the_jobs(
    db: StoreClient, many: dict[int, dict[str, Any]]
) -> None:
    for remainder, decision in ((0, "approved"), (1, "automatic"), (2, "rejected")):
        db.do(
            "insert into laneway.approvals (seq, decision, decided_at, decided_by)"
            " select seq, %s, now(), 'eve' from laneway.jobs where mod(seq, 7) = %s",
            decision,
            remainder,
        )
    for status in (None, Status.APPROVED, Status.COMPLETED):
        for within in (None, *REACHES):
            wanted = JobFilter(status=status, within=within)
            every = page_through(db, wanted, 200)
            for was_approved in (True, False):
                expected = [j.id for j in every if (j.approved_by is not None) is was_approved]
                asked = replace(wanted, was_approved=was_approved)
                for limit, scan in ((200, jobs.SCAN), (7, 1)):
                    assert [j.id for j in page_through(db, asked, limit, scan)] == expected


def test_last_approved_job_of_a_rare_type_is_found_at_once(db: StoreClient) -> None:
    publish(db, approval=Approval())
    rare = db.submit()
    approve(db, rare)
    db.do(
        "insert into laneway.jobs (seq, id, job_type, payload)"
        " select g + 1000, gen_random_uuid(), 'often', '{}' from generate_series(1, 2000) g"
    )
    db.do("insert into laneway.ready (seq, job_type, rank)"
          " select seq, job_type, 0 from laneway.jobs where job_type = 'often'")  # fmt: skip
    wanted = JobFilter(job_type="t", was_approved=True)
    page = db.run(jobs.listing(wanted, limit=1, scan=25))
    assert [job.id for job in page.items] == [db.id_of(rare)]


REACHES = [
    Reach((Term(lanes=frozenset({"interactive"})),)),
    Reach((Term(lanes=frozenset({"default", "system"})),)),
    Reach((Term(workspace="w"), Term(lanes=frozenset({"interactive"})))),
    Reach((Term(owner="ann"), Term(workspace="w", lanes=frozenset({"default"})))),
    Reach((Term(owner="ann"), Term(owner="bob"))),
    Reach(()),
]


@pytest.mark.parametrize("status", [None, *Status])
def test_search_within_reach_agrees_with_terms(
    db: StoreClient, many: dict[int, dict[str, Any]], status: Status | None
) -> None:
    db.do(
        "update laneway.jobs"
        " set created_by = case mod(seq, 4) when 0 then 'ann' when 1 then 'bob' end"
    )
    every = page_through(db, JobFilter(status=status), 200)
    for reach in REACHES:
        expected = [
            job.id
            for job in every
            if reach.covers(owner=job.created_by, workspace=job.workspace, lane=job.lane)
        ]
        for limit, scan in ((200, jobs.SCAN), (7, jobs.SCAN), (50, 1)):
            wanted = JobFilter(status=status, within=reach)
            assert [job.id for job in page_through(db, wanted, limit, scan)] == expected


def test_search_by_worker_finds_name_and_id(
    db: StoreClient, many: dict[int, dict[str, Any]]
) -> None:
    db.do(
        "insert into laneway.workers (id, name, host, pid, code, job_types, concurrency)"
        " values (%s, 'bench', 'h', 1, '0', '{}', 1) on conflict (id) do update set name = 'bench'",
        db.worker,
    )
    every = page_through(db, JobFilter(), 200)
    of_worker = [job.id for job in every if job.claimed_by == db.worker]
    assert 0 < len(of_worker) < len(every)
    for worker in ("bench", str(db.worker)):
        assert [j.id for j in page_through(db, JobFilter(worker=worker), 200)] == of_worker
    assert page_through(db, JobFilter(worker="absent"), 200) == []


def test_search_that_stops_early_goes_on_from_its_cursor(
    db: StoreClient, many: dict[int, dict[str, Any]]
) -> None:
    for wanted in (*FILTERS, JobFilter(q='"i": 7'), JobFilter(tag="none")):
        whole = page_through(db, wanted, 200)
        assert page_through(db, wanted, 50, scan=1) == whole
        first = db.run(jobs.listing(wanted, limit=50, scan=1))
        assert (first.looked_back_to is None) or len(first.items) < 50
        found = db.run(jobs.count(wanted, limit=200, scan=1))
        assert found.matched == len(whole) or found.is_more
        assert db.run(jobs.count(wanted, limit=200)) == (len(whole), False)


def test_stopped_search_returns_its_position(
    db: StoreClient, many: dict[int, dict[str, Any]]
) -> None:
    page = db.run(jobs.listing(JobFilter(tag="none"), limit=50, scan=1))
    assert (page.items, page.next_cursor) == ([], sorted(many)[-25])
    at = db.one("select created_at from laneway.jobs where seq = %s", sorted(many)[-25])
    assert page.looked_back_to == at


def test_oldest_first_goes_on_from_where_it_stopped(db: StoreClient) -> None:
    made = [db.submit(tags=("x",) if i % 5 == 0 else ()) for i in range(20)]
    db.do("delete from laneway.ready")
    db.do("insert into laneway.awaiting (seq, job_type, workspace, rank, expires_at)"
            " select seq, job_type, workspace, 0, now() from laneway.jobs")  # fmt: skip
    found: list[int] = []
    after, pages = None, 0
    while after is not None or not pages:
        page = db.run(jobs.awaiting(JobFilter(tag="x"), limit=10, after=after, scan=6))
        found += page.numbers
        after, pages = page.next_cursor, pages + 1
    assert (found, pages) == (made[::5], 4)


def test_old_time_is_found_among_many_jobs(db: StoreClient) -> None:
    db.do("insert into laneway.jobs (seq, id, job_type, payload, created_at)"
            " select 100000 + g, gen_random_uuid(), 't', '{}',"
            " now() - (12000 - g) * interval '1 min'"
            " from generate_series(1, 12000) g")  # fmt: skip
    now = db.one("select max(created_at) from laneway.jobs")
    for since, until in ((5000, 4000), (100, 0), (20000, 11000), (None, 11990), (3, None)):
        wanted = JobFilter(
            since=None if since is None else now - timedelta(minutes=since),
            until=None if until is None else now - timedelta(minutes=until),
        )
        expected = db.one(
            "select count(*) from laneway.jobs"
            " where created_at >= coalesce(%s::timestamptz, '-infinity')"
            " and created_at < coalesce(%s::timestamptz, 'infinity')",
            wanted.since,
            wanted.until,
        )
        assert db.run(jobs.count(wanted, limit=20_000)) == (expected, False)


def test_since_counts_from_the_submit(db: StoreClient, many: dict[int, dict[str, Any]]) -> None:
    db.do(
        "update laneway.jobs set created_at = created_at - interval '1 day' where mod(seq, 2) = 0"
    )
    since = db.one("select max(created_at) from laneway.jobs") - timedelta(hours=1)
    for status in (None, *Status):
        every = page_through(db, JobFilter(status=status), 200)
        young = page_through(db, JobFilter(status=status, since=since), 200)
        assert young == [j for j in every if j.created_at is not None and j.created_at >= since]


def test_job_shows_the_fields_of_the_contract(
    db: StoreClient, many: dict[int, dict[str, Any]]
) -> None:
    columns = {
        name
        for (name,) in db.rows(
            "select attname from pg_attribute where attrelid = 'laneway.jobs_view'::regclass"
            " and attnum > 0"
        )
    }
    assert columns >= CONTRACT
    landed = VIEW_COLUMNS[: VIEW_COLUMNS.index("finished_at") + 1]
    for view, expected in (
        ("jobs_view", landed),
        ("jobs_as_text", landed),
        ("jobs_as_read", VIEW_COLUMNS),
    ):
        order = db.rows(
            f"select attname from pg_attribute where attrelid = 'laneway.{view}'::regclass"
            " and attnum > 0 order by attnum"
        )
        # Columns are only ever appended: code of the last release reads the first by position.
        assert tuple(name for (name,) in order)[: len(expected)] == expected
    for seq, made in many.items():
        job = db.run(jobs.get(db.id_of(seq)))
        assert job is not None
        shown = job.to_dict()
        assert shown.keys() >= CONTRACT
        assert (job.status, job.job_type, job.workspace) == (
            status_of(db, seq),
            made["job_type"],
            made["workspace"],
        )
        assert (job.tags, job.priority) == (made["tags"], made["priority"])
        assert (job.lease_until is not None) == (job.status is Status.RUNNING)
        assert (job.finished_at is not None) == (job.status in ("completed", "failed", "cancelled"))


def test_waiting_for_a_job_sees_its_status_result_and_error(db: StoreClient) -> None:
    claim = db.running()
    assert db.run(jobs.wait(claim.job_id)) == ("running", None, None)
    db.settle(claim, "fail", error=error(message="m"), delay_s=0)
    assert db.run(jobs.wait(claim.job_id)) == ("approved", None, None)
    (claim,) = db.claimed()
    db.settle(claim, "finish", result='{"n": 1}')
    assert db.run(jobs.wait(claim.job_id)) == ("completed", '{"n": 1}', None)


def test_attempts_list_complete_history_in_order(db: StoreClient) -> None:
    seq = db.submit(max_retries=1)
    for kind in ("release", "snooze", "fail"):
        (claim,) = db.claimed()
        db.settle(claim, kind, error=error(message=kind), delay_s=0)
        db.make_due()
    (claim,) = db.claimed()
    history = db.run(jobs.get_attempts(db.id_of(seq)))
    assert [(a.attempt, a.outcome) for a in history] == [
        (1, "released"),
        (2, "snoozed"),
        (3, "failed"),
        (4, None),
    ]
    assert all(a.claimed_by == db.worker and a.claimed_at is not None for a in history)
    db.settle(claim, "finish")
    assert db.run(jobs.get_attempts(db.id_of(seq)))[-1].outcome == "completed"


def test_attempts_are_read_page_by_page(db: StoreClient) -> None:
    seq = db.submit()
    for _ in range(7):
        (claim,) = db.claimed()
        db.settle(claim, "release", delay_s=0)
    db.claimed()
    job_id = db.id_of(seq)

    def numbers(**page: int) -> list[int]:
        return [one.attempt for one in db.run(jobs.get_attempts(job_id, **page))]

    assert numbers() == list(range(1, 9))
    assert numbers(limit=3) == [6, 7, 8], "the running one is the newest"
    assert numbers(limit=3, before=6) == [3, 4, 5]
    assert numbers(limit=3, before=3) == [1, 2]


def test_waiting_jobs_are_listed_with_their_state(db: StoreClient) -> None:
    ready, delayed, leased, parked, asked = (db.submit() for _ in range(5))
    db.do("delete from laneway.ready where seq <> %s", ready)
    db.do("update laneway.ready set job_type = laneway.analysis_of('t')")
    db.do(
        "insert into laneway.delayed (seq, job_type, rank, run_at)"
        " values (%s, laneway.analysis_of('t'), 0, now())",
        delayed,
    )
    db.do(
        "insert into laneway.lease (seq, attempt, worker_id, lane, job_type, workspace, rank,"
        " retries, max_retries, keyed, lease_seconds, claimed_at, lease_until)"
        " values (%s, 1, gen_random_uuid(), 'analysis', laneway.analysis_of('t'), 'default', 0, 0,"
        " 3, false, 30, now(), now())",
        leased,
    )
    db.do(
        "insert into laneway.key_waiters values (%s, 'default', 'k', 0, 't', 0, 0, false, now())",
        parked,
    )
    db.do(
        "insert into laneway.awaiting (seq, job_type, workspace, rank, expires_at)"
        " values (%s, 't', 'default', 0, now())",
        asked,
    )
    for status, seqs in {
        Status.PENDING: [leased, delayed, ready],
        Status.APPROVED: [parked],
        Status.AWAITING_APPROVAL: [asked],
        Status.RUNNING: [],
    }.items():
        for job_type in (None, "t"):
            found = page_through(db, JobFilter(status=status, job_type=job_type), 2)
            assert [db.seq_of(job.id) for job in found] == seqs, status
            assert all(job.status == status for job in found)
            assert db.run(jobs.count(JobFilter(status=status), limit=100)) == (len(seqs), False)
        assert page_through(db, JobFilter(status=status, job_type="u"), 2) == []
