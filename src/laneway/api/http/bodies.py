"""Limits the size of request bodies, and parses large ones without blocking other requests.

`json.loads` holds the GIL until it ends, also in a thread. So a batch is parsed job by job, and no
piece is larger than a payload may be. A payload's text is kept unchanged where nothing in it needs
rewriting: writing JSON takes longer than parsing it.
"""

from __future__ import annotations

import asyncio
import gc
import json
import re
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, NoReturn

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.types import Message, Scope

from laneway.config.settings import Settings
from laneway.domain.payload import JsonText, PayloadLimits, keep_text
from laneway.errors import InvalidInput

# Anonymous callers send only the login form with its link.
ANONYMOUS_BODY_LIMIT: Final = 16 * 1024
# Bodies without a payload, and everything around a payload.
PLAIN_BODY_LIMIT: Final = 64 * 1024
# Lists of names: a lane has up to ten thousand job types.
NAMES_BODY_LIMIT: Final = 2 * 1024 * 1024
# Jobs of a flow in one body.
FLOW_BODY_JOBS: Final = 10_000
# Escaped as \u0000, a character takes up to three times the bytes of its UTF-8.
_ESCAPED: Final = 3
# Keys in the scope of a request: a check whether part of its body is still missing, and a check
# whether its connection has ended.
UNREAD: Final = "laneway.is_unread"
GONE: Final = "laneway.is_gone"
_MAX_OTHERS: Final = 20
_SPACE: Final = " \t\n\r"
_SPACES: Final = re.compile(f"[{_SPACE}]*")
_PIECE: Final = 64 * 1024
# Larger jobs of a batch are parsed member by member.
_SMALL: Final = 4 * 1024
# Key in the scope of a request: the future of `read_jobs`.
_READ: Final = "laneway.read_body"
_decode = json.JSONDecoder().raw_decode

_WITH_PAYLOAD: Final = ("/jobs", "/mcp", "/events", "/admin/schedules", "/admin/schedules/{name}")
_WITH_NAMES: Final = (
    "/admin/tokens",
    "/admin/workers/lanes",
    "/admin/workers/lanes/{name}",
    "/admin/workers/freeze",
)


def body_limit(scope: Scope, settings: Settings) -> int:
    """The maximum size of a request's body, by its route."""
    path = getattr(scope.get("route"), "path", None)
    if path is None:
        path = scope["path"].removeprefix(scope.get("root_path", ""))
    if path in ("/jobs/batch", "/flows"):
        return settings.max_batch_bytes
    if path in _WITH_PAYLOAD:
        whole = _ESCAPED * settings.max_payload_bytes + PLAIN_BODY_LIMIT
        return min(whole, max(settings.max_batch_bytes, PLAIN_BODY_LIMIT))
    return NAMES_BODY_LIMIT if path in _WITH_NAMES else PLAIN_BODY_LIMIT


class JobBodyRoute(APIRoute):
    """A route whose body contains payloads; those of large bodies are parsed in a thread."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_large(request: Request) -> Response:
            # This request caches the body too: error handlers read it to find what is wrong.
            body = await request.body()

            async def again() -> Message:
                return {"type": "http.request", "body": body, "more_body": False}

            try:
                return await handle(_JobRequest(request.scope, again))
            finally:
                forget_read(request.scope)

        return handle_large


class _JobRequest(Request):
    async def json(self) -> Any:
        settings: Settings = self.app.state.settings
        limits = settings.payload_limits
        if self.scope["route"].path == "/flows":
            limits = replace(limits, batch_jobs=FLOW_BODY_JOBS)
        return await read_once(self.scope, await self.body(), limits)


async def read_once(scope: Scope, body: bytes, limits: PayloadLimits) -> Any:
    """`read_jobs`, once per request: later calls return or raise the same."""
    if _READ not in scope:
        scope[_READ] = asyncio.ensure_future(read_jobs(body, limits))
    return await scope[_READ]


def forget_read(scope: Scope) -> None:
    """Free the result of `read_once`: a connection keeps the scope until its next request."""
    scope.pop(_READ, None)


async def read_jobs(body: bytes, limits: PayloadLimits) -> Any:
    """Parse the JSON of a submit; a large body in a thread, with payloads as `JsonText`."""
    if len(body) <= PLAIN_BODY_LIMIT:
        return json.loads(body)
    return await asyncio.to_thread(_read_large, body, limits)


def _read_large(body: bytes, limits: PayloadLimits) -> Any:
    return _Reader(body.decode(), limits).read()


@contextmanager
def _gc_paused() -> Iterator[None]:
    """Pause the garbage collector, which would traverse a growing tree again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Reader:
    """Parses {"jobs": [...]} element by element, and any other object member by member."""

    def __init__(self, text: str, limits: PayloadLimits) -> None:
        self._text = text
        self._limits = limits
        self._at = 0
        self._most = limits.max_bytes + PLAIN_BODY_LIMIT

    def read(self) -> dict[str, Any]:
        if self._next() != "{":
            raise InvalidInput("body", "must be a JSON object")
        read = self._object("body")
        if self._next():
            self._fail("Extra data")
        return read

    def _object(self, place: str, prefix: str = "") -> dict[str, Any]:
        """Parse an object member by member, with its payload as text."""
        self._at += 1
        read: dict[str, Any] = {}
        if self._next() == "}":
            self._at += 1
            return read
        while True:
            if self._next() != '"':
                self._fail("Expecting property name enclosed in double quotes")
            name = self._value(place)
            if self._next() != ":":
                self._fail("Expecting ':' delimiter")
            self._at += 1
            if name == "jobs" and not prefix and self._next() == "[":
                read[name] = self._jobs()
            elif name == "payload":
                read[name] = self._payload(f"{prefix}payload")
            else:
                read[name] = self._value(f"{prefix}{name}")
            if len(read) > _MAX_OTHERS:
                raise InvalidInput(place, f"has more than {_MAX_OTHERS} members")
            if self._ends("}"):
                return read

    def _jobs(self) -> list[Any]:
        self._at += 1
        jobs: list[Any] = []
        if self._next() == "]":
            self._at += 1
            return jobs
        while True:
            place = f"jobs[{len(jobs)}]"
            if len(jobs) == self._limits.batch_jobs:
                raise InvalidInput("jobs", f"a batch holds at most {len(jobs)} jobs")
            is_object = self._next() == "{"
            job = self._small()
            if job is None:
                job = self._object(place, f"{place}.") if is_object else self._value(place)
            jobs.append(job)
            if self._ends("]"):
                return jobs

    def _small(self) -> Any:
        """Parse a value of a few kilobytes; None: it is larger, or null."""
        piece = self._text[self._at : self._at + _SMALL]
        try:
            value, used = _decode(piece)
        except json.JSONDecodeError:
            return None
        if value is None or used == len(piece):
            return None
        self._at += used
        return value

    def _payload(self, field: str) -> JsonText | None:
        """The payload's text, which takes less memory than its tree; a batch has up to 1,000."""
        self._next()
        start = self._at
        with _gc_paused():
            value = self._value(field)
            if value is None:
                return None
            text = self._text[start : self._at]
            return JsonText(keep_text(text, value, limits=self._limits, field=field))

    def _value(self, place: str) -> Any:
        """Parse one value, in pieces that grow until it is complete or too large."""
        self._next()
        text, start = self._text, self._at
        size = _PIECE
        most = start + size
        while True:
            end = min(start + size, most, len(text))
            is_last = end == len(text)
            try:
                value, used = _decode(text[start:end])
            except json.JSONDecodeError as error:
                if is_last:
                    raise json.JSONDecodeError(error.msg, "", start + error.pos) from None
            else:
                # The beginning of a number is a number too: make sure it ends here.
                if is_last or start + used < end:
                    self._at = start + used
                    return value
            if size == _PIECE:
                most = self._reach(start)
            elif end == most:
                raise InvalidInput(place, f"is more than {self._most} bytes of JSON")
            size *= 4

    def _reach(self, start: int) -> int:
        """The latest end of a value of the maximum size, not counting escapes and spaces."""
        weight, end = 0, start
        while end < len(self._text) and weight <= self._most:
            part = self._text[end : end + _PIECE]
            spaces = sum(map(part.count, _SPACE))
            weight += len(part) - spaces - 5 * part.count("\\u")
            end += len(part)
        return end

    def _ends(self, closing: str) -> bool:
        """Whether the list or object ends here, rather than continuing after a comma."""
        found = self._next()
        if found not in (",", closing) or not found:
            self._fail("Expecting ',' delimiter")
        self._at += 1
        return found == closing

    def _next(self) -> str:
        """The next character that is not whitespace; "" at the end."""
        found = _SPACES.match(self._text, self._at)
        self._at = at = self._at if found is None else found.end()
        return self._text[at : at + 1]

    def _fail(self, message: str) -> NoReturn:
        raise json.JSONDecodeError(message, "", self._at)
