"""What a worker says to its heartbeat process: what to hold, to forget, and that it lives."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable
from typing import BinaryIO

Pair = tuple[int, int]

HEAD = struct.Struct("<cIdd")
# TICK says nothing but that the worker's event loop turns.
HOLD, FORGET, BEAT, TICK = b"+", b"-", b"!", b"."


def pack(
    kind: bytes, pairs: Iterable[Pair] = (), lease_s: float = 0.0, age_s: float = 0.0
) -> bytes:
    """One message: what, how many, the lease and its age, then pairs of seq and attempt."""
    numbers = array("q", (number for pair in pairs for number in pair))
    return HEAD.pack(kind, len(numbers) // 2, lease_s, age_s) + numbers.tobytes()


def receive(stream: BinaryIO) -> tuple[bytes, list[Pair], float, float] | None:
    """The next message; None once the worker has closed the pipe or died in the middle of one."""
    head = stream.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    kind, count, lease_s, age_s = HEAD.unpack(head)
    body = stream.read(16 * count)
    if len(body) < 16 * count:
        return None
    numbers = array("q", body)
    return kind, list(zip(numbers[::2], numbers[1::2], strict=True)), lease_s, age_s
