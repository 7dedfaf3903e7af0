"""Jobs by a prefix of their id: within scope, several at once, up to a bound."""

from __future__ import annotations

from tests.api.conftest import Ask, People
from tests.support.job_factory import JobFactory

IDS = "/jobs/ids"


async def test_prefix_finds_the_jobs_in_reach(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    vera, sam = people.new("vera", "viewer"), people.new("sam", "submitter")
    own, other = factory.submit(created_by="sam"), factory.submit(created_by="bob")
    prefixes = {"prefix": [str(own)[:-1], other.hex[:-1], "ffff"]}
    seen = (await ask(vera, "GET", IDS, params=prefixes)).json()["items"]
    assert [each["ids"] for each in seen] == [[str(own)], [str(other)], []]
    assert [each["is_more"] for each in seen] == [False, False, False]
    assert [each["prefix"] for each in seen] == [str(own)[:-1], str(other)[:-1], "ffff"]
    seen = (await ask(sam, "GET", IDS, params=prefixes)).json()["items"]
    assert [each["ids"] for each in seen] == [[str(own)], [], []]


async def test_prefix_that_is_none_is_refused(ask: Ask, people: People) -> None:
    vera = people.new("vera", "viewer")
    for prefix in ("019", "greet", "0" * 40):
        answer = await ask(vera, "GET", IDS, params={"prefix": prefix})
        assert answer.status_code == 422, answer.text
    assert (await ask(vera, "GET", IDS)).status_code == 422
    many = {"prefix": ["0190"] * 201}
    assert (await ask(vera, "GET", IDS, params=many)).status_code == 422
