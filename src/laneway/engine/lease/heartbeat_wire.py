"""Messages from a worker to its heartbeat process."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import BinaryIO, NamedTuple

Pair = tuple[int, int]

HEAD = struct.Struct("<cIdd")
# NAMED is HOLD with job ids of 16 bytes each, for servers that know claims by their job ids. TICK
# means that the worker's event loop is running, and is answered. QUIT ends the process. The end of
# the stream is not enough: processes forked by a handler may hold the worker's side open.
HOLD, NAMED, FORGET, BEAT, TICK, QUIT = b"+", b"=", b"-", b"!", b".", b"q"
ID_BYTES = 16


class HeartbeatMessage(NamedTuple):
    """A kind, the pairs of seq and attempt it is about, the lease and its age."""

    kind: bytes
    pairs: list[Pair]
    lease_s: float
    age_s: float
    job_ids: list[bytes]


def pack(
    kind: bytes,
    pairs: Iterable[Pair] = (),
    lease_s: float = 0.0,
    age_s: float = 0.0,
    job_ids: Sequence[bytes] = (),
) -> bytes:
    """Encode a message: kind, count, lease and age, then the pairs, then job ids if any."""
    numbers = array("q", chain.from_iterable(pairs))
    head = HEAD.pack(kind, len(numbers) // 2, lease_s, age_s)
    return head + numbers.tobytes() + b"".join(job_ids)


def receive(stream: BinaryIO) -> HeartbeatMessage | None:
    """Read the next message; None once the worker closed the pipe or died mid-message."""
    head = stream.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    kind, count, lease_s, age_s = HEAD.unpack(head)
    body = stream.read(16 * count)
    ids = stream.read(ID_BYTES * count) if kind == NAMED else b""
    if len(body) < 16 * count or (kind == NAMED and len(ids) < ID_BYTES * count):
        return None
    numbers = array("q", body)
    pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
    job_ids = [ids[at : at + ID_BYTES] for at in range(0, len(ids), ID_BYTES)]
    return HeartbeatMessage(kind, pairs, lease_s, age_s, job_ids)
