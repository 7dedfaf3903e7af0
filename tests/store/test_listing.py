"""Lists and the view say what the tables say."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from laneway.domain.job import Job
from laneway.domain.states import Status
from laneway.store import jobs
from laneway.store.jobs import VIEW_COLUMNS, Filter
from laneway.store.leases import Report
from tests.store.desk import Desk, error

TAGS: list[tuple[str, ...]] = [(), ("x",), ("x", "y")]
CONTRACT = {
    "id", "job_type", "lane", "status", "priority", "payload", "result", "error", "progress",
    "checkpoint", "analysis", "attempt", "retries", "max_retries", "workspace", "tags",
    "unique_key", "created_at", "created_by", "approved_at", "approved_by", "expires_at",
    "run_at", "claimed_by", "worker", "claimed_at", "lease_until", "last_progress_at",
    "cancel_requested_at", "started_at", "finished_at",
}  # fmt: skip


@pytest.fixture
def many(desk: Desk) -> dict[int, dict[str, Any]]:
    """Some ninety jobs in every status there is; what each was submitted with."""
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
        made[desk.submit(job_type, payload={"i": i}, **more)] = {"job_type": job_type, **more}
    desk.do("update laneway.worker_lanes set max_slots = null")
    for claim in desk.claimed(25, ["t", "u"]) + desk.claimed(15, ["polarity"], lane="interactive"):
        kind = rng.choice(["finish", "giveup", "release", "cancel", "running", "running"])
        if kind == "running":
            desk.report([Report(claim, done=1, total=4)])
        else:
            desk.settle(claim, kind, error=error(), result="[1]")
    return made


def status_of(desk: Desk, seq: int) -> str:
    (place,) = desk.places(seq)
    if place == "outcome":
        return str(desk.row("outcome", seq)["status"])
    return "running" if place == "lease" else "approved"


def page_through(desk: Desk, wanted: Filter, limit: int) -> list[Job]:
    found: list[Job] = []
    before: int | None = None
    while True:
        page = desk.run(jobs.listing(wanted, limit=limit, before=before))
        assert len(page.items) <= limit
        found += page.items
        if page.next_cursor is None:
            return found
        before = page.next_cursor


FILTERS = [
    Filter(),
    *(Filter(status=s) for s in Status),
    *(Filter(status=s, workspace="w", job_type="t") for s in (None, *Status)),
    *(Filter(status=s, lane="interactive") for s in (None, *Status)),
    *(Filter(status=s, tag="y") for s in (None, *Status)),
]


def test_every_filter_and_page_agrees_with_the_tables(
    desk: Desk, many: dict[int, dict[str, Any]]
) -> None:
    statuses = {seq: status_of(desk, seq) for seq in many}
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
            found = page_through(desk, wanted, limit)
            assert [job.payload for job in found] == [{"i": list(many).index(s)} for s in expected]
            assert all(job.status == statuses[s] for job, s in zip(found, expected, strict=True))


def test_since_counts_from_the_submit(desk: Desk, many: dict[int, dict[str, Any]]) -> None:
    desk.do(
        "update laneway.jobs set created_at = created_at - interval '1 day' where mod(seq, 2) = 0"
    )
    since = desk.one("select max(created_at) from laneway.jobs") - timedelta(hours=1)
    for status in (None, *Status):
        every = page_through(desk, Filter(status=status), 200)
        young = page_through(desk, Filter(status=status, since=since), 200)
        assert young == [j for j in every if j.created_at is not None and j.created_at >= since]


def test_a_job_shows_the_fields_of_the_contract(
    desk: Desk, many: dict[int, dict[str, Any]]
) -> None:
    columns = {
        name
        for (name,) in desk.rows(
            "select attname from pg_attribute where attrelid = 'laneway.jobs_view'::regclass"
            " and attnum > 0"
        )
    }
    assert columns >= CONTRACT
    for view in ("jobs_view", "jobs_as_text"):
        order = desk.rows(
            f"select attname from pg_attribute where attrelid = 'laneway.{view}'::regclass"
            " and attnum > 0 order by attnum"
        )
        assert tuple(name for (name,) in order) == VIEW_COLUMNS
    for seq, made in many.items():
        job = desk.run(jobs.get(desk.id_of(seq)))
        assert job is not None
        shown = job.to_dict()
        assert shown.keys() >= CONTRACT
        assert (job.status, job.job_type, job.workspace) == (
            status_of(desk, seq),
            made["job_type"],
            made["workspace"],
        )
        assert (job.tags, job.priority) == (made["tags"], made["priority"])
        assert (job.lease_until is not None) == (job.status is Status.RUNNING)
        assert (job.finished_at is not None) == (job.status in ("completed", "failed", "cancelled"))


def test_waiting_for_a_job_sees_its_status_result_and_error(desk: Desk) -> None:
    claim = desk.running()
    assert desk.run(jobs.wait(claim.job_id)) == ("running", None, None)
    desk.settle(claim, "fail", error=error(message="m"), delay_s=0)
    assert desk.run(jobs.wait(claim.job_id)) == ("approved", None, None)
    (claim,) = desk.claimed()
    desk.settle(claim, "finish", result='{"n": 1}')
    assert desk.run(jobs.wait(claim.job_id)) == ("completed", '{"n": 1}', None)


def test_attempts_tell_the_whole_story_in_order(desk: Desk) -> None:
    seq = desk.submit(max_retries=1)
    for kind in ("release", "snooze", "fail"):
        (claim,) = desk.claimed()
        desk.settle(claim, kind, error=error(message=kind), delay_s=0)
    (claim,) = desk.claimed()
    history = desk.run(jobs.get_attempts(desk.id_of(seq)))
    assert [(a.attempt, a.outcome) for a in history] == [
        (1, "released"),
        (2, "snoozed"),
        (3, "failed"),
        (4, None),
    ]
    assert all(a.claimed_by == desk.worker and a.claimed_at is not None for a in history)
    desk.settle(claim, "finish")
    assert desk.run(jobs.get_attempts(desk.id_of(seq)))[-1].outcome == "completed"
