"""What a process pool and its children say to each other: JSON, each message behind its length.

Pool to child: hello (once), job, stop, answer, retire. Child to pool: started, report, log, ask,
abandon (an ask), ended. All but hello and retire name the job they are about by its number on this
wire, so that what comes too late is told from what is meant. JSON and not pickle: a payload must
never become code.
"""

from __future__ import annotations

import json
import struct
from typing import Any

from laneway.errors import (
    DatabaseUnavailable,
    InvalidInput,
    LanewayError,
    Refused,
    StaleAttempt,
)

Message = dict[str, Any]

INTERRUPTED = "interrupted"
_ERRORS: dict[str, type[LanewayError]] = {
    error.code: error for error in (StaleAttempt, Refused, DatabaseUnavailable)
}

HEAD = struct.Struct(">I")
# Far above anything meant: a longer one is not ours, whoever wrote it into the socket.
LONGEST = 1 << 29


def pack(message: Message) -> bytes:
    """A message as bytes, its length first."""
    # A handler's text may hold lone surrogates; json.loads takes them back the same way.
    body = json.dumps(message, ensure_ascii=False).encode(errors="surrogatepass")
    return HEAD.pack(len(body)) + body


def unpack(body: bytes) -> Message:
    """The message in bytes without their length; ValueError if there is none."""
    message = json.loads(body)
    if not isinstance(message, dict) or not isinstance(message.get("kind"), str):
        raise ValueError("not a message")
    return message


def pack_error(error: BaseException) -> dict[str, str]:
    """An error as the other side can raise it again."""
    if isinstance(error, InvalidInput):
        return {"code": error.code, "field": error.field, "text": error.rule}
    if isinstance(error, LanewayError):
        return {"code": error.code, "text": str(error)}
    return {"code": "error", "text": f"{type(error).__name__}: {error}"}


def unpack_error(told: dict[str, str]) -> LanewayError:
    """The error that `pack_error` was given, or the nearest there is."""
    if told["code"] == InvalidInput.code:
        return InvalidInput(told["field"], told["text"])
    return _ERRORS.get(told["code"], LanewayError)(told["text"])
