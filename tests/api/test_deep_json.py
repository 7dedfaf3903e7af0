"""Too deep JSON is refused with path and rule, for every schema."""

from __future__ import annotations

import pytest

from tests.api.conftest import Ask, People

DEEP = "[" * 5000 + "]" * 5000
LONG = "1" * 5000
TOO_DEEP = "is nested deeper than 64 levels"
TOO_LONG = "numbers may have at most 308 digits"
BODIES = {
    ("POST", "/jobs"): ('{"job_type": "a", "payload": {"x": %s}}', "body.payload.x"),
    ("POST", "/jobs/batch"): (
        '{"jobs": [{"job_type": "a"}, {"job_type": "b", "payload": %s}]}',
        "body.jobs[1].payload",
    ),
    ("POST", "/admin/schedules"): (
        '{"name": "n", "job_type": "a", "cron": "@daily", "payload": {"x": %s}}',
        "body.payload.x",
    ),
    ("PATCH", "/admin/workers/lanes/default"): ('{"max_slots": %s}', "body.max_slots"),
    ("POST", "/jobs/bulk"): ('{"verb": "cancel", "filter": %s}', "body.filter"),
}


@pytest.mark.parametrize("route", BODIES)
@pytest.mark.parametrize("value,rule", [(DEEP, TOO_DEEP), (LONG, TOO_LONG)])
async def test_unreadable_json_is_refused_by_place_and_rule(
    ask: Ask, people: People, route: tuple[str, str], value: str, rule: str
) -> None:
    body, place = BODIES[route]
    headers = {"Content-Type": "application/json"}
    ann = people.new("ann", "platform_admin")
    answer = await ask(ann, *route, content=(body % value).encode(), headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
    (error,) = answer.json()["errors"]
    assert error["rule"] == rule
    assert error["field"].startswith(place)
    assert len(error["field"]) < 300


async def test_text_that_is_not_json_is_still_refused_as_such(ask: Ask, people: People) -> None:
    ann = people.new("ann", "platform_admin")
    headers = {"Content-Type": "application/json"}
    answer = await ask(ann, "POST", "/jobs", content=b"[" * 5000, headers=headers)
    assert answer.status_code == 422
