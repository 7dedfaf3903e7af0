"""Marks which job the event loop is inside of, where the supervisor can read it afterwards."""

from __future__ import annotations

import mmap
from collections.abc import Coroutine, Generator
from typing import Any

SIZE = 8


class Marker:
    """Eight shared bytes: the seq of the handler that holds the event loop, or 0."""

    def __init__(self, fd: int) -> None:
        self._map = mmap.mmap(fd, SIZE)
        self._cell = memoryview(self._map).cast("q")

    def read(self) -> int:
        return self._cell[0]

    def close(self) -> None:
        self._cell.release()
        self._map.close()

    def watch(self, seq: int, work: Coroutine[Any, Any, Any]) -> Marked:
        return Marked(self._cell, seq, work)


class Marked:
    """Awaits a coroutine with the mark set during each of its steps."""

    __slots__ = ("_cell", "_seq", "_work")

    def __init__(self, cell: memoryview[int], seq: int, work: Coroutine[Any, Any, Any]) -> None:
        self._cell = cell
        self._seq = seq
        self._work = work

    def __await__(self) -> Generator[Any, Any, Any]:
        cell, seq, work = self._cell, self._seq, self._work
        error: BaseException | None = None
        value: Any = None
        while True:
            cell[0] = seq
            try:
                waited = work.send(value) if error is None else work.throw(error)
            except StopIteration as end:
                return end.value
            finally:
                cell[0] = 0
            value, error = None, None
            try:
                value = yield waited
            except BaseException as raised:
                error = raised
