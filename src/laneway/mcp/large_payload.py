"""Cuts a large payload out of its message: the MCP package parses messages on the event loop.

The package sees a mark instead of the payload. In the request to the API, the mark is replaced with
the payload's text.
"""

from __future__ import annotations

import gc
import json
import re
from typing import Final, NamedTuple
from uuid import uuid4

from pydantic_core import from_json

from laneway.domain.payload import PayloadLimits, keep_text
from laneway.errors import InvalidInput

# The largest text that the package parses: a message, or one without its payload.
MESSAGE_LIMIT: Final = 256 * 1024
# Key in the scope of a request to /mcp.
CUT: Final = "laneway.cut_payload"
FIELD: Final = "params.arguments.payload"

_PATH: Final = ("params", "arguments", "payload")
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_decode = json.JSONDecoder().raw_decode


class Cut(NamedTuple):
    """A message with a mark instead of its payload, the mark, and the payload."""

    message: bytes
    mark: bytes
    payload: bytes


class PayloadRefused(Exception):
    """The payload is invalid; `message` is the message without it."""

    def __init__(self, error: InvalidInput, message: bytes) -> None:
        super().__init__(error, message)
        self.error = error
        self.message = message


class _OtherMessage(Exception):
    """The large part of the message is not the payload of submit_job."""


def cut_payload(message: bytes, limits: PayloadLimits) -> Cut:
    """Cut params.arguments.payload out of a large message, with the checks of `POST /jobs`.

    InvalidInput if the rest is too large, PayloadRefused if the payload is invalid, ValueError if
    the message is not JSON.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        return _cut(message, limits)
    except _OtherMessage:
        # Report a message that is not JSON as such, before its size.
        from_json(message)
        raise _too_large(limits) from None
    finally:
        if was_on:
            gc.enable()


def _cut(message: bytes, limits: PayloadLimits) -> Cut:
    text = message.decode()
    spaces = sum(map(text.count, " \t\n\r"))
    if len(text) - spaces - 5 * text.count("\\u") > limits.max_bytes + MESSAGE_LIMIT:
        raise _too_large(limits)
    start = _find(text)
    value, end = _decode(text, start)
    mark = f'"lw-payload-{uuid4().hex}"'
    left = f"{text[:start]}{mark}{text[end:]}".encode()
    if len(left) > MESSAGE_LIMIT:
        raise _OtherMessage
    try:
        payload = keep_text(text[start:end], value, limits=limits, field=FIELD)
    except InvalidInput as error:
        raise PayloadRefused(error, left) from None
    return Cut(left, mark.encode(), payload.encode())


def _find(text: str) -> int:
    """The position of the payload."""
    at = _next(text, 0)
    for wanted in _PATH:
        at = _member(text, at, wanted)
    return at


def _member(text: str, at: int, wanted: str) -> int:
    """The position of a member's value in the object at `at`."""
    if text[at : at + 1] != "{":
        raise _OtherMessage
    while True:
        name, at = _small(text, _next(text, at + 1))
        at = _next(text, at)
        if text[at : at + 1] != ":":
            raise _OtherMessage
        at = _next(text, at + 1)
        if name == wanted:
            return at
        _, at = _small(text, at)
        at = _next(text, at)
        if text[at : at + 1] != ",":
            raise _OtherMessage


def _small(text: str, at: int) -> tuple[object, int]:
    """A value before the payload, and the position after it."""
    try:
        value, used = _decode(text[at : at + MESSAGE_LIMIT])
    except json.JSONDecodeError:
        raise _OtherMessage from None
    return value, at + used


def _next(text: str, at: int) -> int:
    """The position of the next character that is not whitespace."""
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _too_large(limits: PayloadLimits) -> InvalidInput:
    return InvalidInput(
        "message",
        f"must have at most {MESSAGE_LIMIT} bytes besides the payload of submit_job,"
        f" and the payload at most {limits.max_bytes}",
    )
