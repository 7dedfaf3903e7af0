"""What a process pool and its children say to each other: JSON, each message behind its length.

Pool to child: hello (once), job, stop, flushed, retire. Child to pool: started, report, log, flush,
ended. All but hello and retire name the job they are about by its number on this wire, so that what
comes too late is told from what is meant. JSON and not pickle: a payload must never become code.
"""

from __future__ import annotations

import json
import struct
from typing import Any

Message = dict[str, Any]

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
