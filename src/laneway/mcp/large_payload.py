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


def cut_payload(message: bytes, limits: PayloadLimits) -> Cut:
    """Cut params.arguments.payload out of a large message, checked as `POST /jobs` does.

    InvalidInput where what is left is too large, or the payload breaks a rule; ValueError where
    the message is not JSON.
    """
    text = message.decode()
    spaces = sum(map(text.count, " \t\n\r"))
    if len(text) - spaces - 5 * text.count("\\u") > limits.max_bytes + MESSAGE_LIMIT:
        raise _too_large(limits)
    was_on = gc.isenabled()
    gc.disable()
    try:
        start = _find(text, limits)
        value, end = _decode(text, start)
        payload = keep_text(text[start:end], value, limits=limits, field=FIELD)
    finally:
        if was_on:
            gc.enable()
    mark = f'"lw-payload-{uuid4().hex}"'
    left = f"{text[:start]}{mark}{text[end:]}".encode()
    if len(left) > MESSAGE_LIMIT:
        raise _too_large(limits)
    return Cut(left, mark.encode(), payload.encode())


def _find(text: str, limits: PayloadLimits) -> int:
    """Where the payload begins."""
    at = _next(text, 0)
    for wanted in _PATH:
        at = _member(text, at, wanted, limits)
    return at


def _member(text: str, at: int, wanted: str, limits: PayloadLimits) -> int:
    """Where the value of a member of the object at this place begins."""
    if text[at : at + 1] != "{":
        raise _too_large(limits)
    while True:
        name, at = _small(text, _next(text, at + 1), limits)
        at = _next(text, at)
        if text[at : at + 1] != ":":
            raise _too_large(limits)
        at = _next(text, at + 1)
        if name == wanted:
            return at
        _, at = _small(text, at, limits)
        at = _next(text, at)
        if text[at : at + 1] != ",":
            raise _too_large(limits)


def _small(text: str, at: int, limits: PayloadLimits) -> tuple[object, int]:
    """A value before the payload, and where it ends."""
    try:
        value, used = _decode(text[at : at + MESSAGE_LIMIT])
    except json.JSONDecodeError:
        raise _too_large(limits) from None
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
