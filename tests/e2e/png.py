"""Smaller PNG files: the same pixels, compressed as well as zlib can."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# What a picture of a page needs; texts and times of its making are left out.
_NEEDED = (b"IHDR", b"PLTE", b"tRNS")


def shrink(picture: bytes) -> bytes:
    """The same picture with all its data in one well compressed chunk."""
    chunks = list(_chunks(picture))
    pixels = zlib.decompress(b"".join(data for kind, data in chunks if kind == b"IDAT"))
    kept = [(kind, data) for kind, data in chunks if kind in _NEEDED]
    kept += [(b"IDAT", zlib.compress(pixels, 9)), (b"IEND", b"")]
    smaller = _SIGNATURE + b"".join(_chunk(kind, data) for kind, data in kept)
    return min(smaller, picture, key=len)


def _chunks(picture: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_SIGNATURE)
    while at < len(picture):
        (size,) = struct.unpack_from(">I", picture, at)
        yield picture[at + 4 : at + 8], picture[at + 8 : at + 8 + size]
        at += 12 + size


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
