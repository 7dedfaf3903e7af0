"""Messages between a process pool and its children: JSON with a length prefix.

Pool to child: handshake (once), job, stop, answer, retire. Child to pool: started, report, log,
ask, abandon (an ask), ended. All but handshake and retire carry the number of their job on this
socket, so that late messages are recognized. JSON and not pickle: a payload must never become code.
"""

from __future__ import annotations

import json
import struct
from typing import Any

from laneway.errors import (
    DatabaseUnavailable,
    InvalidInput,
    LanewayError,
    QuotaExceeded,
    Refused,
    StaleAttempt,
)

Message = dict[str, Any]

INTERRUPTED = "interrupted"
_ERRORS: dict[str, type[LanewayError]] = {
    error.code: error for error in (StaleAttempt, Refused, DatabaseUnavailable, QuotaExceeded)
}

HEAD = struct.Struct(">I")
# Far above any real message: a longer one was not written by Laneway.
LONGEST = 1 << 29


def pack(message: Message) -> bytes:
    """Encode a message with its length first."""
    # A handler's text may hold lone surrogates, which json.loads restores.
    body = json.dumps(message, ensure_ascii=False).encode(errors="surrogatepass")
    return HEAD.pack(len(body)) + body


def unpack(body: bytes) -> Message:
    """Decode a message without its length; raises ValueError if it is not one."""
    message = json.loads(body)
    if not isinstance(message, dict) or not isinstance(message.get("kind"), str):
        raise ValueError("not a message")
    return message


def pack_error(error: BaseException) -> dict[str, str]:
    """Encode an error, so that the other side can raise it again."""
    if isinstance(error, InvalidInput):
        return {"code": error.code, "field": error.field, "text": error.rule}
    if isinstance(error, LanewayError):
        return {"code": error.code, "text": str(error)}
    return {"code": "error", "text": f"{type(error).__name__}: {error}"}


def unpack_error(packed: dict[str, str]) -> LanewayError:
    """Decode an error of `pack_error`, as the same class or a LanewayError."""
    if packed["code"] == InvalidInput.code:
        return InvalidInput(packed["field"], packed["text"])
    return _ERRORS.get(packed["code"], LanewayError)(packed["text"])
