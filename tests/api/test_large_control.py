"""Schedules, changes and audit entries with large payloads: read in parts and never parsed."""

from __future__ import annotations

import json
import threading
from typing import Any

import psycopg
import pytest

from laneway.api.http.portions import MAX_BYTES
from laneway.domain.stored_json import LARGE
from tests.api.conftest import Ask, People

COUNT = 12
PAYLOAD = {"a": "x" * 1_000_000}
LISTS = {
    "schedules": "/admin/schedules",
    "history": "/admin/schedules/large-00/history",
    "changes": "/admin/changes?kind=schedule",
    "audit": "/admin/audit?kind=schedule",
}


@pytest.fixture
def large(conn: psycopg.Connection[Any]) -> None:
    """Schedules with large payloads, a history and an audit of them."""
    text = json.dumps(PAYLOAD)
    for number in range(COUNT):
        conn.execute(
            "insert into laneway.schedules (name, job_type, cron, payload, updated_by)"
            " values (%s, 'a', '0 5 * * *', %s, 'ann')",
            (f"large-{number:02}", text),
        )
        conn.execute(
            "update laneway.schedules set priority = %s where name = 'large-00'", (number,)
        )
        conn.execute(
            "insert into laneway.audit (actor, door, action, kind, name, outcome, after)"
            " values ('ann', 'http', 'schedule.created', 'schedule', 'a', 'done', %s)",
            (json.dumps({"payload": PAYLOAD}),),
        )


@pytest.fixture
def small_only(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Fail where `json.loads` is given a large text, because that stops the event loop."""
    loads = json.loads

    def checked(text: Any, **options: Any) -> Any:
        assert len(text) <= LARGE, "a large text is parsed"
        return loads(text, **options)

    monkeypatch.setattr(json, "loads", checked)
    return monkeypatch


@pytest.fixture
def off_the_loop(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Fail if the event loop's thread parses a large text or writes a large value."""
    loads, dumps, is_loop = json.loads, json.dumps, threading.get_ident()

    def read(text: Any, **options: Any) -> Any:
        assert len(text) <= LARGE or threading.get_ident() != is_loop, "a large text is parsed"
        return loads(text, **options)

    def write(value: Any, **options: Any) -> str:
        text = dumps(value, **options)
        assert len(text) <= LARGE or threading.get_ident() != is_loop, "a large value is written"
        return text

    monkeypatch.setattr(json, "loads", read)
    monkeypatch.setattr(json, "dumps", write)
    return monkeypatch


@pytest.mark.parametrize("path", LISTS.values(), ids=LISTS)
async def test_large_lists_come_in_pages_of_bounded_bytes(
    ask: Ask, people: People, large: None, small_only: pytest.MonkeyPatch, path: str
) -> None:
    ann = people.new("ann", "platform_admin")
    pages = []
    cursor: str | None = ""
    while cursor is not None:
        joint = "&" if "?" in path else "?"
        following = f"&cursor={cursor}" if cursor else ""
        answer = await ask(ann, "GET", f"{path}{joint}limit=200{following}")
        assert answer.status_code == 200
        # A page has at most one row more than that.
        assert len(answer.content) <= MAX_BYTES + 3_000_000
        pages.append(answer)
        cursor = _cursor(answer.text)
    small_only.undo()
    items = [item for page in pages for item in page.json()["items"]]
    assert len(pages) > 1
    assert len(items) >= COUNT
    names = [item.get("id", item["name"]) for item in items]
    assert len(names) == len(set(names))
    for item in items:
        states = [item[name] for name in ("before", "after") if item.get(name)] or [item]
        assert all(state["payload"] == PAYLOAD for state in states)


async def test_large_schedule_is_shown_without_being_parsed(
    ask: Ask, people: People, large: None, small_only: pytest.MonkeyPatch
) -> None:
    ann = people.new("ann", "operator")
    shown = await ask(ann, "GET", "/admin/schedules/large-03")
    small_only.undo()
    assert shown.json()["payload"] == PAYLOAD


async def test_large_schedule_is_written_without_being_parsed_on_the_loop(
    ask: Ask, people: People, off_the_loop: pytest.MonkeyPatch
) -> None:
    ann = people.new("ann", "platform_admin")
    first, second = ({"a": [[]] * size, "b": {"api_key": "k"}} for size in (40_000, 41_000))
    new = {"name": "lists", "job_type": "a", "cron": "0 5 * * *"}
    path = "/admin/schedules/lists"
    answers = [
        await ask(ann, "POST", "/admin/schedules", **_sent({**new, "payload": first})),
        await ask(ann, "PATCH", path, **_sent({"payload": second})),
        # An unchanged object leaves an audit entry too.
        await ask(ann, "PATCH", path, **_sent({"payload": second})),
        await ask(ann, "PATCH", path, json={"job_type": "b"}),
        await ask(ann, "PATCH", path, json={"enabled": False}),
        await ask(ann, "POST", f"{path}/run"),
        await ask(ann, "POST", f"{path}/rollback"),
        await ask(ann, "DELETE", path),
    ]
    refused = await ask(ann, "PATCH", path, **_sent({"payload": [second]}))
    small = await ask(ann, "PATCH", path, json={"payload": []})
    listed = await ask(ann, "GET", "/admin/audit?kind=schedule")
    off_the_loop.undo()
    assert [answer.status_code for answer in answers] == [201, *[200] * 6, 204]
    assert (refused.status_code, small.status_code) == (422, 422)
    assert refused.json()["errors"] == small.json()["errors"]
    assert answers[0].json()["payload"] == first
    assert answers[1].json()["payload"] == second
    audit_entries = {act["action"]: act for act in reversed(listed.json()["items"])}
    assert {act["workspace"] for act in audit_entries.values()} == {"default"}
    kept = {**second, "b": {"api_key": "[redacted]"}}
    for action in ("schedule.changed", "schedule.rolled_back", "schedule.deleted"):
        assert audit_entries[action]["before"]["payload"] == kept
    created = audit_entries["schedule.created"]["after"]["payload"]
    assert created == {**first, "b": {"api_key": "[redacted]"}}


def _sent(body: object) -> dict[str, Any]:
    """A body exactly as other clients write it."""
    return {
        "content": json.JSONEncoder().encode(body),
        "headers": {"Content-Type": "application/json"},
    }


def _cursor(text: str) -> str | None:
    end = text[text.rindex('"next_cursor":') :]
    found: str | None = json.loads("{" + end)["next_cursor"]
    return found
