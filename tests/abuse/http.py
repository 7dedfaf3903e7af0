"""Hostile HTTP requests: paths, heads, bodies, tokens, searches."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from functools import partial

from tests.abuse.case import CLOSED, Case, Reply, Target, exchange, http, raw, request_bytes

MIB = 1024 * 1024


def _keys(count: int) -> bytes:
    return b"{" + b",".join(b'"k%d":1' % number for number in range(count)) + b"}"


def _paths() -> Iterator[Case]:
    hostile = {
        "urls": "a://:" * 12_000,
        "dots": "a." * 30_000,
        "at signs": "a@" * 30_000,
        "slashes": "/" * 60_000,
        "percent": "%25" * 20_000,
        "nul": "jobs/%00",
        "newline": "jobs/%0d%0aX-Evil:%201",
        "parent": "../../../../etc/passwd",
        "encoded parent": "ui/%2e%2e/%2e%2e/etc/passwd",
        "token words": "token=" * 10_000,
        "bearer": "Bearer%20" * 7_000,
        "quotes": "%22" * 20_000,
        "equals": "=" * 60_000,
        "passwords": "password:" * 6_000,
        "unicode": "%F0%9F%98%80" * 5_000,
        "bad unicode": "%ff%fe" * 10_000,
    }
    for name, path in hostile.items():
        for who in (None, "viewer"):
            label = "anonymous" if who is None else who
            yield http(
                f"path {name} {label}", "GET", f"/{path}", 307, 400, 401, 403, 404, 422, who=who
            )


def _heads() -> Iterator[Case]:
    yield raw("not HTTP", b"\x16\x03\x01" * 1000 + b"\r\n\r\n", expected=(400, CLOSED))
    yield raw("head without end", b"GET / HTTP/1.1\r\nx: " + b"x" * 300_000, expected=(400, CLOSED))
    yield raw(
        "thousands of headers",
        b"GET /me HTTP/1.1\r\n" + b"a: b\r\n" * 50_000 + b"\r\n",
        expected=(400, CLOSED),
    )
    for name in (
        "Authorization",
        "Cookie",
        "X-Request-Id",
        "Idempotency-Key",
        "traceparent",
        "X-Forwarded-For",
        "Laneway-Interface",
        "Last-Event-ID",
        "Origin",
    ):
        yield http(f"long header {name}", "GET", "/me", 400, 401, headers={name: "a=;" * 10_000})
    for token in (
        "",
        "x",
        "lw_",
        "lw_" + "é" * 43,
        "lw_" + "x" * 43,
        "lws_" + "x" * 43,
        "a" * 9000,
    ):
        yield http(f"token {token[:5]!a} of {len(token)}", "GET", "/me", 400, 401, 429, who=token)
    for method in ("TRACE", "CONNECT", "PATCH", "PROPFIND", "OPTIONS", "HEAD"):
        yield http(f"method {method}", method, "/me", 400, 401, 404, 405)
    yield http(
        "smuggled length",
        "POST",
        "/jobs",
        400,
        401,
        CLOSED,
        who="submitter",
        headers={"Transfer-Encoding": "chunked", "Content-Length": "5"},
        body=b"0\r\n\r\n",
    )
    yield http(
        "negative length",
        "POST",
        "/jobs",
        400,
        CLOSED,
        who="submitter",
        headers={"Content-Length": "-1"},
    )
    yield http(
        "endless length",
        "POST",
        "/jobs",
        400,
        413,
        CLOSED,
        who="submitter",
        headers={"Content-Length": "9" * 30},
    )
    yield http(
        "chunk of no size",
        "POST",
        "/jobs",
        400,
        CLOSED,
        who="submitter",
        headers={"Transfer-Encoding": "chunked"},
        body=b"zz\r\nxx\r\n",
    )


def _routes() -> Iterator[tuple[str, str, str]]:
    """Method, path and a caller with the permission."""
    yield "POST", "/jobs", "submitter"
    yield "POST", "/jobs/batch", "submitter"
    yield "POST", "/jobs/bulk", "nobody"
    yield "POST", "/jobs/bulk", "operator"
    yield "POST", "/admin/workers/lanes", "operator"
    yield "PATCH", "/admin/workers/lanes/interactive", "operator"
    yield "POST", "/admin/schedules", "operator"
    yield "PUT", "/admin/limits/openai", "operator"
    yield "POST", "/admin/tokens", "admin"
    yield "POST", "/admin/roles", "admin"
    yield "POST", "/admin/principals", "admin"
    yield "POST", "/mcp", "viewer"


def _bodies() -> Iterator[Case]:
    made = {
        "a million keys": lambda: _keys(1_000_000),
        "ten thousand keys": lambda: _keys(9_000)[:-1] + b"}",
        "deep lists": lambda: b"[" * 60_000,
        "deep objects": lambda: b'{"a":' * 12_000,
        "deep lists, 12 MB": lambda: b"[" * 12 * MIB,
        "a number of a million digits": lambda: b"1" * MIB,
        "an exponent": lambda: b'{"job_type":"x","payload":{"a":1e5000}}',
        "one string of 12 MB": lambda: b'"' + b"x" * 12 * MIB + b'"',
        "six million numbers": lambda: b"[" + b"1," * 6_000_000 + b"1]",
        "escapes": lambda: b'"' + b"\\u0000" * 200_000 + b'"',
        "no UTF-8": lambda: b"\xff\xfe" * 20_000,
        "nothing": lambda: b"",
    }
    for method, path, who in _routes():
        for name, make in made.items():
            yield http(
                f"body of {name} to {method} {path} by {who}",
                method,
                path,
                400,
                401,
                403,
                404,
                413,
                415,
                422,
                CLOSED,
                who=who,
                body=partial(_made, make),
                headers={"Accept": "application/json, text/event-stream"},
                interface="mcp" if path == "/mcp" else "http",
            )
    yield http(
        "large body without a token", "POST", "/jobs/batch", 401, CLOSED, body=b"x" * 12 * MIB
    )
    yield http(
        "large body with a wrong token",
        "POST",
        "/jobs/batch",
        401,
        429,
        CLOSED,
        who="lw_" + "y" * 43,
        body=b"x" * 12 * MIB,
    )
    yield http("large login", "POST", "/login", 413, CLOSED, body=b"link=" + b"x" * MIB)
    yield http("login of many fields", "POST", "/login", 401, 422, 429, body=b"a=b&" * 4000)
    yield http("login in another alphabet", "POST", "/login", 422, body="link=é".encode())


def _batches() -> Iterator[Case]:
    def jobs(count: int, **fields: object) -> bytes:
        one = {"job_type": "abused", "workspace": "mine", "payload": {}, **fields}
        return json.dumps({"jobs": [one] * count}).encode()

    yield http("batch of a thousand", "POST", "/jobs/batch", 202, who="submitter", body=jobs(1000))
    yield http(
        "batch of too many", "POST", "/jobs/batch", 413, 422, who="submitter", body=jobs(100_000)
    )
    yield http(
        "batch of wrong jobs",
        "POST",
        "/jobs/batch",
        422,
        who="submitter",
        body=jobs(1000, zzz=1, yyy=2, priority="high", tags=[1] * 20),
    )
    yield http(
        "batch of large payloads",
        "POST",
        "/jobs/batch",
        202,
        who="submitter",
        cpu_s=4.0,
        memory_mb=128.0,
        body=jobs(15, payload={"a": "x" * 1_000_000}),
    )
    yield http(
        "batch of many numbers",
        "POST",
        "/jobs/batch",
        202,
        who="submitter",
        cpu_s=4.0,
        memory_mb=128.0,
        body=jobs(14, payload={"a": [1] * 500_000}).replace(b" ", b""),
    )
    yield http(
        "batch of many lists",
        "POST",
        "/jobs/batch",
        202,
        who="submitter",
        cpu_s=4.0,
        memory_mb=128.0,
        body=jobs(14, payload={"a": [[]] * 300_000}).replace(b" ", b""),
    )
    yield http(
        "batch of many keys",
        "POST",
        "/jobs/batch",
        202,
        who="submitter",
        cpu_s=4.0,
        memory_mb=128.0,
        body=jobs(14, payload={str(i): i for i in range(60_000)}).replace(b" ", b""),
    )
    yield http(
        "payload of many keys",
        "POST",
        "/jobs",
        202,
        who="submitter",
        body={
            "job_type": "abused",
            "workspace": "mine",
            "payload": {str(i): i for i in range(60_000)},
        },
    )
    yield http(
        "payload of many lists",
        "POST",
        "/jobs",
        202,
        who="submitter",
        body={"job_type": "abused", "workspace": "mine", "payload": {"a": [[]] * 250_000}},
    )
    yield http(
        "batch in another workspace",
        "POST",
        "/jobs/batch",
        403,
        who="submitter",
        body=jobs(2, workspace="theirs"),
    )


def _of_theirs(path: str, target: Target) -> str:
    return path.format(target.jobs["theirs"])


def _made(make: Callable[[], bytes], _: Target) -> bytes:
    return make()


def _tenants() -> Iterator[Case]:
    theirs = {
        "get": ("GET", "/jobs/{}"),
        "attempts": ("GET", "/jobs/{}/attempts"),
        "explain": ("GET", "/jobs/{}/explain"),
        "stream": ("GET", "/jobs/{}/stream"),
        "cancel": ("POST", "/jobs/{}/cancel"),
        "approve": ("POST", "/jobs/{}/approve"),
        "retry": ("POST", "/jobs/{}/retry"),
        "delete": ("DELETE", "/jobs/{}"),
        "priority": ("PATCH", "/admin/workers/jobs/{}/priority"),
        "admin cancel": ("POST", "/admin/workers/jobs/{}/cancel"),
    }
    for name, (method, path) in theirs.items():
        for who in ("submitter", "viewer", "own", "nobody", "worker"):
            yield http(
                f"{name} of another tenant's job by {who}",
                method,
                partial(_of_theirs, path),
                403,
                404,
                who=who,
                body={"priority": 1} if name == "priority" else b"",
                interface="sse" if name == "stream" else "http",
            )
    for query in ("", "?q=tenant", "?workspace=theirs", "?status=approved", "?limit=200"):
        yield http(
            f"list{query} does not show others",
            "GET",
            f"/jobs{query}",
            200,
            who="viewer",
        )


def _flood(
    name: str,
    count: int,
    make: str,
    who: str | None,
    *expected: int | str,
    cpu_s: float = 2.0,
    memory_mb: float = 64.0,
) -> Case:
    async def send(target: Target) -> Reply:
        ask = request_bytes(target, "GET", make, who)
        replies = await asyncio.gather(*(exchange(target, ask) for _ in range(count)))
        wrong = [one for one in replies if one.status not in expected]
        return wrong[0] if wrong else Reply("all as expected")

    return Case(name, "http", send, ("all as expected",), cpu_s, memory_mb)


def _floods() -> Iterator[Case]:
    yield _flood(
        "searches over large jobs at once", 14, "/jobs?q=zzz&limit=200", "viewer", 200, 429
    )
    yield _flood(
        "lists of large jobs at once",
        14,
        "/jobs?limit=200",
        "viewer",
        200,
        429,
        cpu_s=4.0,
        memory_mb=128.0,
    )
    yield _flood("metrics at once", 30, "/metrics", "operator", 200, 429)
    yield _flood("statuses at once", 50, "/admin/workers/status", "operator", 200, 429)
    yield _flood("descriptions at once", 20, "/openapi.json", "viewer", 200, 429)
    yield _flood("wrong tokens at once", 90, "/me", "lw_" + "z" * 43, 401, 429, CLOSED)
    yield _flood("valid tokens after wrong ones", 14, "/me", "own", 200)


CASES = [
    *_paths(),
    *_heads(),
    *_bodies(),
    *_batches(),
    *_tenants(),
    *_floods(),
]
