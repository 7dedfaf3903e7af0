"""What a worker says to its heartbeat process: what to hold, to forget, and that it lives."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Sequence
from typing import BinaryIO, NamedTuple

Pair = tuple[int, int]

HEAD = struct.Struct("<cIdd")
# NAMED is HOLD by a worker whose claims are known elsewhere by their job ids, 16 bytes each.
# TICK says that the worker's event loop turns, and is answered; QUIT ends the process. The end of
# the stream alone does not: processes that a handler forked may hold the worker's side open.
HOLD, NAMED, FORGET, BEAT, TICK, QUIT = b"+", b"=", b"-", b"!", b".", b"q"
ID_BYTES = 16


class HeartbeatMessage(NamedTuple):
    """What to do with which pairs of seq and attempt, the lease and how much of it is gone."""

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
    """One message: what, how many, the lease and its age, then the pairs, then ids if any."""
    numbers = array("q", (number for pair in pairs for number in pair))
    head = HEAD.pack(kind, len(numbers) // 2, lease_s, age_s)
    return head + numbers.tobytes() + b"".join(job_ids)


def receive(stream: BinaryIO) -> HeartbeatMessage | None:
    """The next message; None once the worker has closed the pipe or died in the middle of one."""
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
