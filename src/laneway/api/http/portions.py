"""Pages of rows that may be megabytes each, read in batches sized by what came before."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple

from fastapi import Response

from laneway.domain.json_writer import write_json

# Rows of the first and the largest batch; bytes of a batch and of a page.
AT_FIRST: Final = 5
AT_ONCE: Final = 50
_BYTES_AT_ONCE: Final = 4 * 1024 * 1024
MAX_BYTES: Final = 8 * 1024 * 1024


class RowBatch(NamedTuple):
    """Some rows of a page, and the cursor of the next ones; None: this is the end."""

    rows: Sequence[Mapping[str, object]]
    next_cursor: str | None


async def page(
    read: Callable[[int, str | None], Awaitable[RowBatch]], limit: int, cursor: str | None
) -> Response:
    """Up to `limit` rows of `read(count, cursor)`; fewer where they are large or hard to find."""
    items: list[bytes] = []
    wanted = min(AT_FIRST, limit)
    while True:
        batch = await read(wanted, cursor)
        cursor = batch.next_cursor
        # In a thread: writing megabytes would delay other requests.
        items += await asyncio.to_thread(_rendered, batch.rows)
        size = sum(map(len, items))
        is_cut = len(batch.rows) < wanted or size > MAX_BYTES
        if cursor is None or is_cut or len(items) >= limit:
            break
        wanted = min(next_count(size, len(items)), limit - len(items))
    body = b'{"items":[%b],%b' % (b",".join(items), write_json({"next_cursor": cursor})[1:])
    return Response(body, media_type="application/json")


def next_count(size: int, count: int) -> int:
    """The number of rows to read next, after `count` rows of `size` bytes."""
    room = min(_BYTES_AT_ONCE, MAX_BYTES - size)
    return max(1, min(AT_ONCE, room * count // (size + 1)))


def _rendered(rows: Sequence[Mapping[str, object]]) -> list[bytes]:
    return [write_json(dict(row)) for row in rows]
