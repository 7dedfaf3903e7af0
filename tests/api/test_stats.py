"""Charts: what started and ended when, in bounded time."""

from __future__ import annotations

from laneway.control import stats
from laneway.store.database import Database
from tests.api.conftest import Ask, People
from tests.control.scene import Scene

STATS = "/admin/stats"


async def test_starts_ends_and_waits_are_counted_per_lane_and_type(
    ask: Ask, people: People, scene: Scene
) -> None:
    for _ in range(2):
        scene.completed("ingestion")
    scene.failed("ingestion")
    scene.completed("restore")
    scene.running("ingestion")
    answer = await ask(people.new("vera", "viewer"), "GET", STATS)
    assert answer.status_code == 200
    seen = answer.json()
    assert (seen["is_capped"], seen["bucket_s"]) == (False, 60)
    told = {"started": 0, "completed": 0, "failed": 0, "cancelled": 0}
    for point in seen["points"]:
        if point["lane"] == "interactive":
            told = {name: told[name] + point[name] for name in told}
    assert told == {"started": 4, "completed": 2, "failed": 1, "cancelled": 0}
    waits = [p["wait_p50_s"] for p in seen["points"] if p["lane"] == "system"]
    assert any(wait is not None and wait >= 0 for wait in waits)


async def test_charts_show_lanes_in_reach_only(ask: Ask, people: People, scene: Scene) -> None:
    scene.completed("ingestion")
    scene.running("ingestion")
    scene.completed("restore")
    vera = people.new("vera", "viewer", lanes=["system"])
    seen = (await ask(vera, "GET", STATS)).json()
    assert {point["lane"] for point in seen["points"]} == {"system"}
    foreign = await ask(vera, "GET", STATS, params={"lane": "interactive"})
    assert foreign.status_code == 404


async def test_charts_narrow_to_a_lane_and_a_type(ask: Ask, people: People, scene: Scene) -> None:
    scene.completed("ingestion")
    scene.completed("polarity")
    scene.completed("restore")
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


async def test_a_window_is_a_day_at_most(ask: Ask, people: People) -> None:
    vera = people.new("vera", "viewer")
    for params in BAD:
        assert (await ask(vera, "GET", STATS, params=params)).status_code == 422, params


async def test_only_the_newest_ends_are_looked_at_and_it_says_so(
    database: Database, scene: Scene
) -> None:
    for _ in range(3):
        scene.completed("ingestion")
    found = await stats.series(database, bound=2)
    assert found.is_capped
    assert sum(point.completed for point in found.points) == 2
