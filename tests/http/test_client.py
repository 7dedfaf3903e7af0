"""The clients retry only what is safe and never show a token."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from laneway.domain.limit import Limit
from laneway.errors import (
    DatabaseUnavailable,
    Forbidden,
    InvalidInput,
    LanewayError,
    NotFound,
    QuotaExceeded,
    RateLimited,
    Refused,
    ServerError,
    ServerUnreachable,
    StaleAttempt,
    Unauthenticated,
)
from laneway.http.procedure import retry_after
from laneway.observability import tracing
from tests.http.scripted_server import (
    JOB,
    TOKEN,
    ClientRunner,
    LocalServer,
    Scripted,
    ScriptedServer,
    answer,
    job,
    problem,
)

pytestmark = pytest.mark.usefixtures("no_pauses")


# -- sending ----------------------------------------------------------------------------------


def test_request_has_prefix_token_and_interface_header(runner: ClientRunner) -> None:
    script = ScriptedServer(answer(200, {"status": "ok"}))
    assert runner.call(script, lambda c: c.get_health(), door="mcp").status == "ok"
    (request,) = script.requests
    assert str(request.url) == "http://localhost/api/healthz"
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert request.headers["laneway-door"] == "mcp"


@pytest.mark.parametrize(
    "trouble",
    [
        httpx2.ConnectError("refused"),
        httpx2.ReadTimeout("slow"),
        httpx2.RemoteProtocolError("gone"),
        problem(503, "database_unavailable"),
        problem(429, "rate_limited"),
        answer(502),
        problem(409, "idempotency_under_way"),
    ],
)
def test_submit_is_sent_again_under_one_key(runner: ClientRunner, trouble: Scripted) -> None:
    script = ScriptedServer(trouble, trouble, answer(202, job("approved")))
    assert runner.call(script, lambda c: c.submit("greet", {"a": 1})).id == JOB
    keys = script.headers("idempotency-key")
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert keys[0]


def test_two_submits_have_two_keys(runner: ClientRunner) -> None:
    keys = []
    for _ in range(2):
        script = ScriptedServer(answer(202, job("approved")))
        runner.call(script, lambda c: c.submit("greet"))
        keys += script.headers("idempotency-key")
    assert len(set(keys)) == 2
    script = ScriptedServer(answer(202, job("approved")))
    runner.call(script, lambda c: c.submit("greet", idempotency_key="mine"))
    assert script.headers("idempotency-key") == ["mine"]


@pytest.mark.parametrize("text", ["", "é", "a\nb", " a"])
def test_invalid_header_value_is_refused_before_sending(runner: ClientRunner, text: str) -> None:
    # Especially an empty key: it would count as no key, and two submits as two jobs.
    with pytest.raises(InvalidInput, match="idempotency_key"):
        runner.call(ScriptedServer(), lambda c: c.submit("greet", idempotency_key=text))
    with pytest.raises(InvalidInput, match="last_event_id"):
        runner.call(ScriptedServer(), lambda c: c.watch(JOB, last_event_id=text))


@pytest.mark.parametrize(
    "field, method",
    [
        ("tags", lambda c: c.submit("greet", tags="nightly")),
        ("topics", lambda c: c.events("jobs")),
        ("lanes", lambda c: c.grant_role("ann", "viewer", "all", lanes="default")),
        ("lanes", lambda c: c.create_token("ann", "laptop", lanes="default")),
        ("permissions", lambda c: c.create_token("ann", "laptop", "jobs:read")),
        ("lanes", lambda c: c.freeze_lanes("default")),
    ],
)
def test_text_is_not_taken_for_a_list_of_its_letters(
    runner: ClientRunner, field: str, method: Callable[[Any], Any]
) -> None:
    with pytest.raises(InvalidInput) as caught:
        runner.call(ScriptedServer(), method)
    assert caught.value.field == field


def test_request_belongs_to_the_trace_it_was_sent_in(runner: ClientRunner) -> None:
    theirs = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    script = ScriptedServer(answer(202, job("approved")), answer(202, job("approved")))
    token = tracing.receive(theirs)
    assert token is not None
    runner.call(script, lambda c: c.submit("greet"))
    tracing.forget(token)
    runner.call(script, lambda c: c.submit("greet"))
    assert script.headers("traceparent") == [theirs, None]


@pytest.mark.parametrize(
    "method",
    [
        lambda c: c.create_token("ann", "laptop"),
        lambda c: c.switch_principal("ann", disabled=True),
        lambda c: c.tune_lane("default", {"max_slots": 1}),
        lambda c: c.delete_job(JOB),
    ],
)
def test_unrepeatable_request_is_sent_once(
    runner: ClientRunner, method: Callable[[Any], Any]
) -> None:
    script = ScriptedServer(httpx2.ReadTimeout("slow"), answer(200))
    with pytest.raises(ServerUnreachable, match=r"localhost.*slow"):
        runner.call(script, method)
    assert len(script.requests) == 1


def test_idempotent_put_is_sent_again(runner: ClientRunner, no_pauses: list[float]) -> None:
    limit = {"name": "gpu", "max_concurrent": 2, "rate_count": None, "rate_period_s": None}
    body = {**limit, "scope": "cluster", "updated_at": None, "updated_by": None}
    script = ScriptedServer(httpx2.ReadTimeout("slow"), answer(503), answer(200, body))
    tuned = runner.call(script, lambda c: c.put_limit(Limit("gpu", 2)))
    assert (tuned.limit.max_concurrent, tuned.is_new) == (2, False)
    assert [request.method for request in script.requests] == ["PUT"] * 3


def test_unavailable_server_is_reported_after_last_try(
    runner: ClientRunner, no_pauses: list[float]
) -> None:
    script = ScriptedServer(*[httpx2.ConnectError("refused")] * 4)
    with pytest.raises(ServerUnreachable, match="refused"):
        runner.call(script, lambda c: c.get_me())
    assert len(script.requests) == 4
    bounds = [(0.05, 0.1), (0.1, 0.2), (0.2, 0.4)]
    assert all(low <= each <= high for each, (low, high) in zip(no_pauses, bounds, strict=True))


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_of_server_is_respected(
    runner: ClientRunner, no_pauses: list[float], status: int
) -> None:
    script = ScriptedServer(answer(status, retry_after="7"), answer(200, {"status": "ok"}))
    runner.call(script, lambda c: c.get_health())
    assert no_pauses == [7.0]


def test_too_long_retry_after_is_not_waited_for(
    runner: ClientRunner, no_pauses: list[float]
) -> None:
    script = ScriptedServer(answer(503, retry_after="3600"))
    with pytest.raises(ServerUnreachable):
        runner.call(script, lambda c: c.get_health())
    assert no_pauses == []


def test_throttled_error_has_retry_after(runner: ClientRunner) -> None:
    with pytest.raises(RateLimited) as caught:
        runner.call(
            ScriptedServer(answer(429, retry_after="7")), lambda c: c.get_health(), retries=0
        )
    assert caught.value.retry_after == 7


def test_refusal_by_a_quota_is_raised_at_once(runner: ClientRunner) -> None:
    body = {"code": "quota_exceeded", "detail": "full", "bound": "max_queued", "limit": 3}
    full = answer(429, body, retry_after="5")
    script = ScriptedServer(full)
    with pytest.raises(QuotaExceeded) as caught:
        runner.call(script, lambda c: c.submit("greet"))
    assert caught.value.retry_after == 5
    assert (caught.value.bound, caught.value.limit) == ("max_queued", 3)
    assert len(script.requests) == 1


def test_retry_after_is_a_number_or_a_date() -> None:
    assert retry_after("3") == 3
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert retry_after("") is None
    assert retry_after("soon") is None
    assert retry_after("Mon, 01 Jan 99999999999 00:00:00 GMT") is None


# -- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "response, error",
    [
        (problem(404, "not_found"), NotFound),
        (problem(409, "refused"), Refused),
        (problem(409, "stale_attempt"), StaleAttempt),
        (problem(401, "unauthenticated"), Unauthenticated),
        (problem(403, "forbidden"), Forbidden),
        (problem(503, "database_unavailable"), DatabaseUnavailable),
        (problem(429, "rate_limited"), RateLimited),
        (problem(500, "internal"), ServerError),
        (problem(409, "a_code_of_tomorrow"), Refused),
        (problem(400, "a_code_of_tomorrow"), ServerError),
        (answer(404), ServerError),
        (answer(504), ServerUnreachable),
        (answer(302, location="http://elsewhere/"), ServerError),
        (
            httpx2.Response(200, content=b"<html>", headers={"content-type": "text/html"}),
            ServerError,
        ),
        (answer(200, {"id": 7}), ServerError),
        (answer(200, []), ServerError),
    ],
)
def test_code_is_an_error_class(
    runner: ClientRunner, response: httpx2.Response, error: type[Exception]
) -> None:
    with pytest.raises(LanewayError) as caught:
        runner.call(ScriptedServer(response), lambda c: c.explain_job(JOB), retries=0)
    assert type(caught.value) is error


@pytest.mark.parametrize(
    "response",
    [
        answer(404),
        answer(404, {"detail": "Not Found"}),
        httpx2.Response(404, content=b"<html>", headers={"content-type": "text/html"}),
        problem(404, "not_found", "Not Found"),
    ],
)
def test_missing_api_is_reported_with_its_address(
    runner: ClientRunner, response: httpx2.Response
) -> None:
    for method in (lambda c: c.get_job(JOB), lambda c: c.wait(JOB)):
        with pytest.raises(ServerError, match="no Laneway API at http://localhost/api"):
            runner.call(ScriptedServer(response), method)


def test_refusal_keeps_field_rule_and_request(runner: ClientRunner) -> None:
    errors = [
        {"field": "body.priority", "rule": "must be small"},
        {"field": "query.lane", "rule": "must be a name"},
    ]
    response = problem(422, "invalid_input", errors=errors)
    with pytest.raises(InvalidInput) as caught:
        runner.call(ScriptedServer(response), lambda c: c.submit("greet"))
    assert caught.value.field == "priority"
    assert caught.value.rule == "must be small; lane: must be a name"
    assert caught.value.__notes__ == ["request r1"]
    with pytest.raises(InvalidInput) as caught:
        runner.call(
            ScriptedServer(problem(413, "too_large", "body: at most 9 bytes")),
            lambda c: c.submit("x"),
        )
    assert (caught.value.field, caught.value.rule) == ("body", "at most 9 bytes")


@pytest.mark.parametrize("body", [None, [], {"errors": [{"loc": 1}]}, {"errors": "all"}])
def test_refusal_of_something_between_is_understood_too(runner: ClientRunner, body: Any) -> None:
    with pytest.raises(InvalidInput, match="the server responded with status 413"):
        runner.call(ScriptedServer(answer(413, body)), lambda c: c.submit("greet"))


# -- secrets ----------------------------------------------------------------------------------


def test_token_is_in_no_text(runner: ClientRunner, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    client = runner.kind("http://localhost", TOKEN)
    assert TOKEN not in f"{client!r} {vars(client)!r}"
    with pytest.raises(ServerUnreachable) as caught:
        runner.call(ScriptedServer(httpx2.ConnectError("away")), lambda c: c.get_me(), retries=0)
    assert TOKEN not in f"{caught.value!r} {caplog.text}"


@pytest.mark.parametrize(
    "url", ["http://jobs.example.org", "http://10.0.0.7:8420", "http://localhost.example.org"]
)
def test_token_is_not_sent_where_others_can_read_it(runner: ClientRunner, url: str) -> None:
    with pytest.raises(InvalidInput, match="must be https"):
        runner.kind(url, TOKEN)
    runner.kind(url)
    runner.kind(url, TOKEN, allow_insecure=True)


@pytest.mark.parametrize(
    "url",
    ["https://jobs.example.org", "http://localhost:8420", "http://[::1]:1", "http://127.0.0.9"],
)
def test_token_is_sent_over_tls_and_within_the_machine(runner: ClientRunner, url: str) -> None:
    runner.kind(url, TOKEN)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "jobs.example.org",
        "ftp://x",
        "https://ann:secret@x",
        "https://x/?a=1",
        "http://",
        f"https://{'a' * 70}.org",
    ],
)
def test_invalid_address_is_refused(runner: ClientRunner, url: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        runner.kind(url, TOKEN)
    assert caught.value.field == "base_url"
    assert "secret" not in str(caught.value)


def test_loopback_requests_use_no_proxy(
    runner: ClientRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LocalServer() as proxy, LocalServer() as server:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        runner.call_at(server.url, lambda c: c.get_health())
        assert (len(server.received), len(proxy.received)) == (1, 0)
        runner.call_at("http://jobs.example.org", lambda c: c.get_health(), token=None)
    assert proxy.received == ["GET http://jobs.example.org/healthz HTTP/1.1"]


@pytest.mark.parametrize(
    "token", ["", " ", "lw_\nb", "lw_é", "lw_a b", "lw_\x7f", '{"token":"lw_x"}', "Bearer lw_x"]
)
def test_invalid_token_is_refused_and_not_shown(runner: ClientRunner, token: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        runner.kind("http://localhost", token)
    assert caught.value.field == "token"
    assert "lw_" not in str(caught.value)


@pytest.mark.parametrize("around", [f"{TOKEN} ", f" {TOKEN}", f"\t{TOKEN}\r\n"])
def test_white_space_around_token_is_ignored(runner: ClientRunner, around: str) -> None:
    script = ScriptedServer(answer(200, {"status": "ok"}))
    runner.call(script, lambda c: c.get_health(), token=around)
    assert script.headers("authorization") == [f"Bearer {TOKEN}"]


@pytest.mark.parametrize("kind", [httpx2.LocalProtocolError, httpx2.RemoteProtocolError])
def test_header_errors_do_not_reveal_token(
    runner: ClientRunner, kind: type[httpx2.ProtocolError]
) -> None:
    trouble = kind(f"Illegal header value b'Bearer {TOKEN} '")
    with pytest.raises(ServerUnreachable) as caught:
        runner.call(ScriptedServer(trouble), lambda c: c.get_me(), retries=0)
    assert TOKEN not in f"{caught.value!r}"
