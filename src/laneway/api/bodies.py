"""Request bodies: how large each may be, and large ones read without stopping other requests.

`json.loads` holds the interpreter for as long as it takes, in a thread too. So a batch is read job
by job, and no piece that is read at once is larger than a payload may be.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Coroutine
from typing import Any, Final, NoReturn

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.types import Message, Scope

from laneway.client import JsonText
from laneway.config import Settings
from laneway.domain.payload import PayloadLimits, encode
from laneway.errors import InvalidInput

# All that anonymous callers have to say is a form with a link.
ANONYMOUS_BODY_LIMIT: Final = 16 * 1024
# What has no payload, and what stands around one.
PLAIN_BODY_LIMIT: Final = 64 * 1024
# Lists of names: a lane has up to ten thousand job types.
NAMES_BODY_LIMIT: Final = 2 * 1024 * 1024
# As \u0000 a character takes three times the bytes of its UTF-8.
_ESCAPED: Final = 3
# In the scope of a request to our server: whether some of its body has not come yet.
UNREAD: Final = "laneway.is_unread"
_MOST_OTHERS: Final = 20
_SPACE: Final = " \t\n\r"
_SPACES: Final = re.compile(f"[{_SPACE}]*")
_PIECE: Final = 64 * 1024
_decode = json.JSONDecoder().raw_decode

_WITH_PAYLOAD: Final = ("/jobs", "/mcp", "/admin/schedules", "/admin/schedules/{name}")
_WITH_NAMES: Final = (
    "/admin/tokens",
    "/admin/workers/lanes",
    "/admin/workers/lanes/{name}",
    "/admin/workers/freeze",
)


def body_limit(scope: Scope, settings: Settings) -> int:
    """The most bytes that the body of a request to this route may have."""
    path = getattr(scope.get("route"), "path", None)
    if path is None:
        path = scope["path"].removeprefix(scope.get("root_path", ""))
    if path == "/jobs/batch":
        return settings.max_batch_bytes
    if path in _WITH_PAYLOAD:
        whole = _ESCAPED * settings.max_payload_bytes + PLAIN_BODY_LIMIT
        return min(whole, max(settings.max_batch_bytes, PLAIN_BODY_LIMIT))
    return NAMES_BODY_LIMIT if path in _WITH_NAMES else PLAIN_BODY_LIMIT


class JobBodyRoute(APIRoute):
    """A route whose body holds payloads: those of large bodies are checked and encoded apart."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_large(request: Request) -> Response:
            # Kept by this request too, for whoever has to say what is wrong with it.
            body = await request.body()

            async def again() -> Message:
                return {"type": "http.request", "body": body, "more_body": False}

            return await handle(_JobRequest(request.scope, again))

        return handle_large


class _JobRequest(Request):
    _read: Any = None

    async def json(self) -> Any:
        if self._read is None:
            settings: Settings = self.app.state.settings
            self._read = await read_jobs(await self.body(), settings.payload_limits)
        return self._read


async def read_jobs(body: bytes, limits: PayloadLimits) -> Any:
    """The JSON of a submit; in a large body, payloads are `JsonText` and other work goes on."""
    if len(body) <= PLAIN_BODY_LIMIT:
        return json.loads(body)
    return await asyncio.to_thread(_read_large, body, limits)


def _read_large(body: bytes, limits: PayloadLimits) -> Any:
    return _Reader(body.decode(), limits).read()


class _Reader:
    """Reads {"jobs": [...]} element by element, and any other object member by member."""

    def __init__(self, text: str, limits: PayloadLimits) -> None:
        self._text = text
        self._limits = limits
        self._at = 0
        self._most = limits.max_bytes + PLAIN_BODY_LIMIT

    def read(self) -> dict[str, Any]:
        if self._next() != "{":
            raise InvalidInput("body", "must be a JSON object")
        self._at += 1
        read: dict[str, Any] = {}
        if self._next() == "}":
            self._at += 1
        else:
            self._members(read)
        if self._next():
            self._fail("Extra data")
        return read

    def _members(self, read: dict[str, Any]) -> None:
        while True:
            if self._next() != '"':
                self._fail("Expecting property name enclosed in double quotes")
            name = self._value("body")
            if self._next() != ":":
                self._fail("Expecting ':' delimiter")
            self._at += 1
            if name == "jobs" and self._next() == "[":
                read[name] = self._jobs()
            else:
                read[name] = self._value(name)
                if name == "payload":
                    read[name] = self._encoded(read[name], "payload")
            if len(read) > _MOST_OTHERS:
                raise InvalidInput("body", f"has more than {_MOST_OTHERS} members")
            if self._ends("}"):
                return

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
            began = self._at
            job = self._value(place)
            if isinstance(job, dict) and "payload" in job and self._at - began > _PIECE // 16:
                job["payload"] = self._encoded(job["payload"], f"{place}.payload")
            jobs.append(job)
            if self._ends("]"):
                return jobs

    def _encoded(self, payload: object, field: str) -> JsonText | None:
        """Its text: that takes less than its tree, and a thousand of them are kept."""
        if payload is None:
            return None
        return JsonText(encode(payload, limits=self._limits, field=field))

    def _value(self, place: str) -> Any:
        """One value; what is read at once grows until it is whole or larger than it may be."""
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
                # A number that is cut reads as another number.
                if is_last or start + used < end:
                    self._at = start + used
                    return value
            if size == _PIECE:
                most = self._reach(start)
            elif end == most:
                raise InvalidInput(place, f"is more than {self._most} bytes of JSON")
            size *= 4

    def _reach(self, start: int) -> int:
        """Where a value of the largest size ends at the latest, escapes and spaces not counted."""
        weight, end = 0, start
        while end < len(self._text) and weight <= self._most:
            part = self._text[end : end + _PIECE]
            spaces = sum(map(part.count, _SPACE))
            weight += len(part) - spaces - 5 * part.count("\\u")
            end += len(part)
        return end

    def _ends(self, closing: str) -> bool:
        """Whether the list or object ends here, and not goes on after a comma."""
        found = self._next()
        if found not in (",", closing) or not found:
            self._fail("Expecting ',' delimiter")
        self._at += 1
        return found == closing

    def _next(self) -> str:
        """The next character that is no space, "" at the end."""
        found = _SPACES.match(self._text, self._at)
        self._at = at = self._at if found is None else found.end()
        return self._text[at : at + 1]

    def _fail(self, message: str) -> NoReturn:
        raise json.JSONDecodeError(message, "", self._at)
