"""A large payload is cut out of its message: the MCP package parses messages on the event loop.

The package sees a mark in the payload's place. The request to the API that holds the mark gets the
payload back, as text.
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

# What the package parses: a message, or what is left of one without its payload.
MESSAGE_LIMIT: Final = 256 * 1024
# In the scope of a request to /mcp.
CUT: Final = "laneway.cut_payload"
FIELD: Final = "params.arguments.payload"

_PATH: Final = ("params", "arguments", "payload")
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_decode = json.JSONDecoder().raw_decode


class Cut(NamedTuple):
    """A message without its payload, the mark in its place, and the payload."""

    message: bytes
    mark: bytes
    payload: bytes


class PayloadRefused(Exception):
    """The payload breaks a rule; `message` is the message without it."""

    def __init__(self, error: InvalidInput, message: bytes) -> None:
        super().__init__(error, message)
        self.error = error
        self.message = message


class _OtherMessage(Exception):
    """The large part of the message is not the payload of submit_job."""


def cut_payload(message: bytes, limits: PayloadLimits) -> Cut:
    """Cut params.arguments.payload out of a large message, checked as `POST /jobs` does.

    InvalidInput where what is left is too large, PayloadRefused where the payload breaks a rule,
    ValueError where the message is not JSON.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        return _cut(message, limits)
    except _OtherMessage:
        # ValueError: it is not JSON, which is said first.
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
    """Where the payload begins."""
    at = _next(text, 0)
    for wanted in _PATH:
        at = _member(text, at, wanted)
    return at


def _member(text: str, at: int, wanted: str) -> int:
    """Where the value of a member of the object at this place begins."""
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
    """A value before the payload, and where it ends."""
    try:
        value, used = _decode(text[at : at + MESSAGE_LIMIT])
    except json.JSONDecodeError:
        raise _OtherMessage from None
    return value, at + used


def _next(text: str, at: int) -> int:
    """Where the next character is that is no space."""
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _too_large(limits: PayloadLimits) -> InvalidInput:
    return InvalidInput(
        "message",
        f"has at most {MESSAGE_LIMIT} bytes beside the payload of submit_job, and the payload at"
        f" most {limits.max_bytes}",
    )
