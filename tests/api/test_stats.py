"""Charts: starts and ends over time, in bounded time."""

from __future__ import annotations

from datetime import datetime, timedelta

from laneway.control import stats
from laneway.domain.approval import analysis_of
from laneway.store.database import Database
from tests.api.conftest import Ask, People
from tests.support.job_factory import JobFactory

STATS = "/admin/stats"


async def test_starts_ends_and_waits_are_counted_per_lane_and_type(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    for _ in range(2):
        factory.completed("ingestion")
    factory.failed("ingestion")
    factory.completed("restore")
    factory.running("ingestion")
    answer = await ask(people.new("vera", "viewer"), "GET", STATS)
    assert answer.status_code == 200
    seen = answer.json()
    assert (seen["is_capped"], seen["bucket_s"]) == (False, 60)
    totals = {"started": 0, "completed": 0, "failed": 0, "cancelled": 0}
    for point in seen["points"]:
        if point["lane"] == "interactive":
            totals = {name: totals[name] + point[name] for name in totals}
    assert totals == {"started": 4, "completed": 2, "failed": 1, "cancelled": 0}
    waits = [p["wait_p50_s"] for p in seen["points"] if p["lane"] == "system"]
    assert any(wait is not None and wait >= 0 for wait in waits)


async def test_charts_show_lanes_in_reach_only(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    factory.completed("ingestion")
    factory.running("ingestion")
    factory.completed("restore")
    vera = people.new("vera", "viewer", lanes=["system"])
    seen = (await ask(vera, "GET", STATS)).json()
    assert {point["lane"] for point in seen["points"]} == {"system"}
    foreign = await ask(vera, "GET", STATS, params={"lane": "interactive"})
    assert foreign.status_code == 404


async def test_charts_narrow_to_a_lane_and_a_type(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    factory.completed("ingestion")
    factory.completed("polarity")
    factory.completed("restore")
    vera = people.new("vera", "viewer")
    params = {"lane": "interactive", "job_type": "polarity"}
    points = (await ask(vera, "GET", STATS, params=params)).json()["points"]
    assert {(p["lane"], p["job_type"]) for p in points} == {("interactive", "polarity")}


BAD: list[dict[str, str | int]] = [
    {"window_s": 86_401},
    {"bucket_s": 59},
    {"window_s": 60, "bucket_s": 61},
    {"job_type": "\0"},
]


async def test_window_is_a_day_at_most(ask: Ask, people: People) -> None:
    vera = people.new("vera", "viewer")
    for params in BAD:
        assert (await ask(vera, "GET", STATS, params=params)).status_code == 422, params


async def test_stats_read_only_newest_ends_and_report_it(
    database: Database, factory: JobFactory
) -> None:
    for _ in range(3):
        factory.completed("ingestion")
    found = await stats.series(database, bound=2)
    assert found.is_capped
    assert sum(point.completed for point in found.points) == 2


async def test_lane_is_one_point_when_asked_so(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    for job_type in ("ingestion", "polarity", "polarity"):
        factory.completed(job_type)
    factory.failed("ingestion")
    factory.conn.execute("update laneway.outcome set started_at = claimed_at")
    vera = people.new("vera", "viewer")
    params = {"window_s": 1800, "bucket_s": 1800, "by_lane": True}
    (point,) = (await ask(vera, "GET", STATS, params=params)).json()["points"]
    assert (point["lane"], point["job_type"]) == ("interactive", None)
    assert (point["started"], point["completed"], point["failed"]) == (4, 3, 1)
    assert 0 <= point["run_p50_s"] <= point["run_p95_s"]


def failing(factory: JobFactory, job_type: str, error: str) -> str:
    claim = factory.running(job_type)
    text = f'{{"type": "{error}", "message": "s3cret", "traceback": "s3cret"}}'
    factory.settle(claim, "giveup", error=text)
    return str(claim.job_id)


FAILURES = f"{STATS}/failures"


async def test_failed_analysis_counts_where_its_job_would_have_run(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    factory.publish("restore", has_analysis=True)
    job_id = factory.submit("restore")
    (claim,) = factory.claim(analysis_of("restore"))
    factory.settle(claim, "giveup", error='{"type": "OSError", "message": "no"}')
    vera = people.new("vera", "viewer", lanes=["system"])
    (failure,) = (await ask(vera, "GET", FAILURES)).json()["items"]
    assert (failure["lane"], failure["example"]) == ("system", str(job_id))
    failed = {"status": "failed", "lane": failure["lane"], "job_type": failure["job_type"]}
    listed = (await ask(vera, "GET", "/jobs", params=failed)).json()["items"]
    assert [job["id"] for job in listed] == [str(job_id)]


async def test_failures_are_grouped_by_type_and_error_without_messages(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    failing(factory, "ingestion", "OSError")
    newest = failing(factory, "ingestion", "OSError")
    failing(factory, "ingestion", "ValueError")
    failing(factory, "restore", "OSError")
    factory.completed("ingestion")
    vera = people.new("vera", "viewer")
    answer = await ask(vera, "GET", FAILURES)
    assert answer.status_code == 200, answer.text
    assert "s3cret" not in answer.text
    seen = answer.json()
    first = seen["items"][0]
    assert (first["job_type"], first["error_type"], first["failures"]) == (
        "ingestion", "OSError", 2,
    )  # fmt: skip
    assert (first["lane"], first["example"]) == ("interactive", newest)
    assert sorted((each["job_type"], each["error_type"]) for each in seen["items"][1:]) == [
        ("ingestion", "ValueError"),
        ("restore", "OSError"),
    ]
    narrow = {"job_type": "restore", "top": 1}
    (only,) = (await ask(vera, "GET", FAILURES, params=narrow)).json()["items"]
    assert only["job_type"] == "restore"


async def test_failures_are_of_lanes_in_reach_and_of_the_window(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    failing(factory, "ingestion", "OSError")
    failing(factory, "restore", "OSError")
    larry = people.new("larry", "viewer", lanes=["system"])
    seen = (await ask(larry, "GET", FAILURES)).json()["items"]
    assert [each["lane"] for each in seen] == ["system"]
    foreign = await ask(larry, "GET", FAILURES, params={"lane": "interactive"})
    assert foreign.status_code == 404
    factory.conn.execute("update laneway.outcome set finished_at = finished_at - interval '2 min'")
    assert (await ask(larry, "GET", FAILURES, params={"window_s": 60})).json()["items"] == []


async def test_job_that_failed_before_it_ran_counts_in_the_lane_it_waited_for(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    failing(factory, "ingestion", "TooOld")
    factory.conn.execute("update laneway.outcome set lane = null")
    vera = people.new("vera", "viewer")
    (seen,) = (await ask(vera, "GET", FAILURES)).json()["items"]
    assert seen["lane"] == "interactive"


async def test_only_the_newest_failures_are_examined(
    database: Database, factory: JobFactory
) -> None:
    failing(factory, "ingestion", "OSError")
    failing(factory, "ingestion", "ValueError")
    for _ in range(5):
        factory.completed("ingestion")
    capped = await stats.failures(database, bound=1)
    assert [each.error_type for each in capped.items] == ["ValueError"]
    assert capped.is_capped
    found = await stats.failures(database, bound=3)
    assert (len(found.items), found.is_capped) == (2, False), "completed jobs take no place"


async def test_every_workspace_has_its_share_of_the_examined_failures(
    database: Database, factory: JobFactory
) -> None:
    for workspace in ("north", "south"):
        for _ in range(3):
            factory.failed("ingestion", workspace=workspace)
    found = await stats.failures(database, bound=4)
    assert (found.items[0].failures, found.is_capped) == (4, True)


async def test_workspace_with_more_failures_takes_what_the_others_leave(
    database: Database, factory: JobFactory
) -> None:
    factory.failed("ingestion", workspace="north")
    for _ in range(5):
        factory.failed("ingestion", workspace="south")
    capped = await stats.failures(database, bound=5)
    assert (capped.items[0].failures, capped.is_capped) == (5, True)
    whole = await stats.failures(database, bound=8)
    assert (whole.items[0].failures, whole.is_capped) == (6, False)


async def test_no_workspace_is_left_out_where_there_are_many(
    database: Database, factory: JobFactory
) -> None:
    factory.conn.execute(
        "insert into laneway.outcome"
        " (seq, status, workspace, job_type, priority, attempt, retries, finished_at)"
        " select -n, 'failed', 'w' || n, 'ingestion', 0, 1, 0, now() - interval '1 year'"
        "   from generate_series(1, 101) n"
    )
    factory.failed("ingestion", workspace="zurich")
    found = await stats.failures(database, bound=50)
    assert [(each.failures, found.is_capped) for each in found.items] == [(1, True)]
    assert not (await stats.failures(database, bound=200)).is_capped


async def test_failures_have_a_trend_and_when_they_were_first_and_last_seen(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    ids = [failing(factory, "ingestion", "OSError") for _ in range(4)]
    for minutes, job_id in zip((59, 31, 31, 0), ids, strict=True):
        factory.conn.execute(
            "update laneway.outcome o set finished_at = finished_at - make_interval(mins => %s)"
            "  from laneway.jobs j where j.seq = o.seq and j.id = %s",
            (minutes, job_id),
        )
    seen = (await ask(people.new("vera", "viewer"), "GET", FAILURES)).json()
    (group,) = seen["items"]
    assert seen["bucket_s"] == 150
    assert group["trend"] == [1, *[0] * 10, 2, *[0] * 11, 1]
    first, last = (datetime.fromisoformat(group[name]) for name in ("first_at", "last_at"))
    assert timedelta(minutes=58) < last - first < timedelta(minutes=60)


async def test_jobs_of_a_failure_group_are_listed_by_their_error(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    old = failing(factory, "ingestion", "OSError")
    factory.conn.execute("update laneway.outcome set error_type = null")  # before migration 0023
    new = failing(factory, "ingestion", "OSError")
    failing(factory, "ingestion", "ValueError")
    failing(factory, "polarity", "OSError")
    vera = people.new("vera", "viewer")
    (group,) = [
        each
        for each in (await ask(vera, "GET", FAILURES)).json()["items"]
        if (each["job_type"], each["error_type"]) == ("ingestion", "OSError")
    ]
    assert group["failures"] == 2
    wanted = {"job_type": "ingestion", "error_type": "OSError"}
    listed = (await ask(vera, "GET", "/jobs", params=wanted)).json()
    assert [job["id"] for job in listed["items"]] == [new, old]
    assert listed["next_cursor"] is None
