"""Published job types, for interfaces and people without the handlers' code."""

from __future__ import annotations

from uuid import UUID

from laneway.domain.approval import Approval
from tests.api.conftest import Ask, People, Principal
from tests.support.job_factory import JobFactory

TYPES = "/admin/workers/types"
SCHEMA = '{"type": "object", "properties": {"path": {"type": "string"}}}'


async def test_published_type_is_listed_with_policy(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    factory.publish(
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


async def test_type_without_live_worker_is_marked(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    factory.publish("greet")
    factory.publish("forgotten")
    factory.register(("greet",))
    vera = people.new("vera", "viewer")

    async def known() -> dict[str, bool]:
        items = (await ask(vera, "GET", TYPES)).json()["items"]
        return {each["name"]: each["is_known"] for each in items}

    assert await known() == {"forgotten": False, "greet": True}
    factory.conn.execute("update laneway.workers set seen_at = seen_at - interval '1 min'")
    assert await known() == {"forgotten": False, "greet": False}


async def test_types_are_paged_by_name_and_only_of_lanes_in_reach(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    for name in ("restore", "polarity", "ingestion", "greet"):
        factory.publish(name)
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


PUBLISHERS = "/admin/workers/publishers"


async def test_publishers_are_listed_by_type_and_paged(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    for job_type, application in (("refund", "shop"), ("refund", "old/shop"), ("pay", "shop")):
        factory.publish(job_type, application=application)
    factory.conn.execute(
        "update laneway.type_publishers set seen_at = seen_at - interval '60 days'"
        " where application = 'old/shop'"
    )
    vera = people.new("vera", "viewer")
    first = (await ask(vera, "GET", PUBLISHERS, params={"limit": 2})).json()
    rest = (await ask(vera, "GET", PUBLISHERS, params={"cursor": first["next_cursor"]})).json()
    seen = [(each["job_type"], each["application"]) for each in first["items"] + rest["items"]]
    assert seen == [("pay", "shop"), ("refund", "old/shop"), ("refund", "shop")]
    assert rest["next_cursor"] is None
    (stale,) = (await ask(vera, "GET", PUBLISHERS, params={"stale_only": "true"})).json()["items"]
    assert (stale["application"], stale["is_stale"]) == ("old/shop", True)
    (pay,) = (await ask(vera, "GET", PUBLISHERS, params={"job_type": "pay"})).json()["items"]
    assert not pay["is_stale"]
    for cursor in ("x", "[1, 2]", '["a"]', "\0"):
        refused = await ask(vera, "GET", PUBLISHERS, params={"cursor": cursor})
        assert refused.status_code == 422


async def test_forgotten_application_no_longer_binds_others(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    factory.publish("refund", application="old/shop", approval=Approval())
    factory.publish("refund", application="shop")
    admin, vera = people.new("ann", "platform_admin"), people.new("vera", "viewer")
    where = f"{PUBLISHERS}/old%2Fshop"
    assert (await ask(vera, "DELETE", where)).status_code == 403
    answer = await ask(admin, "DELETE", where, params={"job_type": "refund"})
    assert answer.json() == {"application": "old/shop", "job_types": ["refund"]}
    assert (await ask(admin, "DELETE", where)).status_code == 404
    factory.publish("refund", application="shop")
    (seen,) = (await ask(vera, "GET", TYPES)).json()["items"]
    assert seen["approval"] == "never"


async def test_suggested_type_is_one_that_the_caller_may_see(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    """A name that only other workspaces use is not suggested, even in a lane they share."""
    factory.publish("payroll_acme")
    factory.submit("payroll_acme", workspace="acme")
    ann = people.new("ann", "submitter", workspace="default")

    async def reason_of(caller: Principal, job_id: UUID) -> str:
        explained = (await ask(caller, "GET", f"/jobs/{job_id}/explain")).json()
        (found,) = (r for r in explained["reasons"] if r["code"] == "type_unpublished")
        return str(found["message"])

    mistyped = factory.submit("payroll_acm", created_by="ann")
    assert await reason_of(ann, mistyped) == (
        "no worker has ever published the job type payroll_acm"
    )
    factory.submit("payroll_acme", created_by="ann")
    assert (await reason_of(ann, mistyped)).endswith("; did you mean payroll_acme?")
    for caller in (people.new("vera", "viewer"), people.new("ops", "operator")):
        other = factory.submit("payroll_acm", workspace="acme")
        assert (await reason_of(caller, other)).endswith("; did you mean payroll_acme?")
