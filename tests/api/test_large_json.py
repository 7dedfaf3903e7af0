"""Large payloads: stored and returned as text, so that no request blocks others."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from fastapi import FastAPI
from hypothesis import given, settings
from hypothesis import strategies as st
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from laneway.domain.payload import DEFAULT_LIMITS, decode, encode, keep_text
from laneway.domain.stored_json import LARGE, StoredJson, stored_json
from laneway.errors import InvalidInput
from tests.api.conftest import Ask, People
from tests.api.test_server import served

PAYLOAD = {"a": [[]] * 40_000, "text": '"]}é\\'}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.fixture
def no_large_tree(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Fail if `json.loads` parses a large text, because that blocks the event loop."""
    loads = json.loads

    def small_only(text: Any, **options: Any) -> Any:
        assert len(text) <= LARGE, "a large text is parsed"
        return loads(text, **options)

    monkeypatch.setattr(json, "loads", small_only)
    return monkeypatch


async def test_large_payload_is_answered_without_being_parsed(
    ask: Ask, people: People, no_large_tree: pytest.MonkeyPatch
) -> None:
    ann = people.new("ann", "operator")
    body = json.dumps({"job_type": "a", "payload": PAYLOAD}).encode()
    headers = {"Content-Type": "application/json"}
    submitted = await ask(ann, "POST", "/jobs", content=body, headers=headers)
    assert submitted.status_code == 202
    where = submitted.headers["location"]
    listed = await ask(ann, "GET", "/jobs")
    shown = await ask(ann, "GET", where)
    cancelled = await ask(ann, "POST", f"{where}/cancel")
    streamed = await ask(ann, "GET", f"{where}/stream")
    no_large_tree.undo()
    (in_stream,) = [line for line in streamed.text.splitlines() if line.startswith("data: ")]
    jobs = [one.json() for one in (submitted, shown, cancelled)]
    for job in (*jobs, listed.json()["items"][0], json.loads(in_stream.removeprefix("data: "))):
        assert job["payload"] == PAYLOAD
        assert job["job_type"] == "a"
    assert cancelled.json()["status"] == "cancelled"


@given(JSON)
@settings(deadline=None)
def test_stored_text_equals_encoded_value(value: object) -> None:
    text = json.dumps(value, ensure_ascii=False)
    assert outcome(partial(keep_text, text, value, limits=DEFAULT_LIMITS, field="payload")) == (
        outcome(partial(encode, value))
    )


@pytest.mark.parametrize(
    "number",
    [
        "0.1",
        "-0.0",
        "0.00001",
        "1.50",
        "123456789.12345678901",
        "12345678901234567.25",
        "0.10000000000000001",
        "0.1234567890123456789",
        "1234567890123456789012",
    ],
)
def test_number_is_stored_alike_from_small_and_large_bodies(number: str) -> None:
    text = f'{{"a": [{number}, "1.50"]}}'
    kept = keep_text(text, json.loads(text), limits=DEFAULT_LIMITS, field="payload")
    assert numeric(kept) == numeric(encode(json.loads(text)))


def numeric(text: str) -> object:
    """Numbers as PostgreSQL stores them: their digits, and the number of decimals."""
    return json.loads(text, parse_float=lambda digits: Decimal(digits).as_tuple())


def outcome(make: Callable[[], str]) -> object:
    try:
        return decode(make())
    except InvalidInput as error:
        return str(error)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 65 + "]" * 65,
        '{"a": NaN}',
        "[-Infinity]",
        "[1e999]",
        "1" * 309,
        '"\\u0000"',
        '["\\ud800"]',
        f'["{"x" * DEFAULT_LIMITS.max_bytes}"]',
    ],
    ids=range(8),
)
def test_text_that_breaks_a_rule_is_not_kept(text: str) -> None:
    with pytest.raises(InvalidInput):
        keep_text(text, json.loads(text), limits=DEFAULT_LIMITS, field="payload")


def test_endless_depth_and_numbers_are_not_passed_on() -> None:
    filler = ", ".join(["[]"] * LARGE)
    hidden = '["' + "]" * 80 + '", '
    deep = hidden + "[" * 300 + "]" * 300 + ', "' + "[" * 80 + '"]'
    # Each string takes the openings before it back.
    stepwise = '["]", ' * 300 + "0" + ', "["]' * 300
    escaped = stepwise.replace('"]"', '"\\\\\\"]"')
    for hidden_deep in (stepwise, escaped):
        assert stored_json(f"[{filler}, {hidden_deep}]") is None
    for text in (f"[{filler}, {deep}]", f"[{filler}, {'1' * 5000}]"):
        assert stored_json(text) is None
    assert isinstance(stored_json(f"[{filler}]"), StoredJson)
    assert isinstance(stored_json(f'["]", {filler}]'), StoredJson)
    assert isinstance(stored_json(f'["\\\\", "\\"]", {filler}]'), StoredJson)
    assert stored_json("[]") is None


async def test_answered_request_is_freed_without_the_garbage_collector(app: FastAPI) -> None:
    gc.collect()
    gc.disable()
    try:
        async for port in served(app):
            for _ in range(20):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")
                assert await reader.read()
                writer.close()
                await writer.wait_closed()
            left = sum(type(one) is RequestResponseCycle for one in gc.get_objects())
            assert left <= 2
    finally:
        gc.enable()
