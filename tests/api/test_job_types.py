"""What is published of job types, for doors and people without the handlers' code."""

from __future__ import annotations

from laneway.domain.approval import Approval
from tests.api.conftest import Ask, People
from tests.control.scene import Scene

TYPES = "/admin/workers/types"
SCHEMA = '{"type": "object", "properties": {"path": {"type": "string"}}}'


async def test_a_published_type_is_told_with_its_policy(
    ask: Ask, people: People, scene: Scene
) -> None:
    scene.publish(
        "ingestion",
        SCHEMA,
        approval=Approval(below_cost=5, currency="EUR"),
        has_analysis=True,
        limits=("openai",),
    )
    answer = await ask(people.new("vera", "viewer"), "GET", TYPES)
    assert answer.status_code == 200
    (seen,) = answer.json()["items"]
    assert (seen["name"], seen["lane"], seen["limits"]) == ("ingestion", "interactive", ["openai"])
    assert seen["arguments"]["properties"] == {"path": {"type": "string"}}
    assert (seen["approval"], seen["approval_below"], seen["approval_unit"]) == ("below", 5, "EUR")
    assert (seen["has_analysis"], seen["max_retries"], seen["two_person"]) == (True, 3, False)


async def test_a_type_that_no_living_worker_knows_is_told_apart(
    ask: Ask, people: People, scene: Scene
) -> None:
    scene.publish("greet")
    scene.publish("forgotten")
    scene.register(("greet",))
    vera = people.new("vera", "viewer")

    async def known() -> dict[str, bool]:
        items = (await ask(vera, "GET", TYPES)).json()["items"]
        return {each["name"]: each["is_known"] for each in items}

    assert await known() == {"forgotten": False, "greet": True}
    scene.conn.execute("update laneway.workers set seen_at = seen_at - interval '1 min'")
    assert await known() == {"forgotten": False, "greet": False}


async def test_types_are_paged_by_name_and_only_of_lanes_in_reach(
    ask: Ask, people: People, scene: Scene
) -> None:
    for name in ("restore", "polarity", "ingestion", "greet"):
        scene.publish(name)
    vera = people.new("vera", "viewer")
    first = (await ask(vera, "GET", TYPES, params={"limit": 3})).json()
    rest = (await ask(vera, "GET", TYPES, params={"cursor": first["next_cursor"]})).json()
    names = [each["name"] for each in first["items"] + rest["items"]]
    assert names == ["greet", "ingestion", "polarity", "restore"]
    assert rest["next_cursor"] is None
    larry = people.new("larry", "viewer", lanes=["interactive"])
    seen = (await ask(larry, "GET", TYPES)).json()["items"]
    assert [each["name"] for each in seen] == ["ingestion", "polarity"]
    assert (await ask(larry, "GET", TYPES, params={"lane": "system"})).status_code == 404
    assert (await ask(vera, "GET", TYPES, params={"cursor": "\0"})).status_code == 422
