"""Marks whose handlers run, where the supervisor can read it after the process has died.

A shared file outlives the process and needs no word from it: of a handler that takes its process
along at its first step, nothing else would be known.
"""

from __future__ import annotations

import mmap
from collections.abc import Coroutine, Generator
from typing import Any, Final

from laneway import forks

# Handlers that may be marked at once; more are not told apart.
MOST: Final = 16384
# The handler that holds the event loop, how many were not marked, and the others.
_HEAD: Final = 2
SIZE: Final = 8 * (_HEAD + MOST)


class LoopMarker:
    """Shared numbers: the seq of the handler that holds the event loop, or 0, and of all begun."""

    def __init__(self, fd: int) -> None:
        self._map = mmap.mmap(fd, SIZE)
        self._cell = memoryview(self._map).cast("q")
        self._free = list(range(_HEAD + MOST - 1, _HEAD - 1, -1))

    def read(self) -> int:
        """The handler that holds the event loop; 0: none does."""
        return self._cell[0]

    def begun(self) -> list[int] | None:
        """The handlers that were called and have not returned; None: more than could be marked."""
        return None if self._cell[1] else [seq for seq in self._cell[_HEAD:] if seq]

    def begin(self, seq: int) -> int:
        """Marks a handler that is called now; answers the place of its mark."""
        if not self._free:
            self._cell[1] += 1
            return 0
        place = self._free.pop()
        self._cell[place] = seq
        return place

    def end(self, place: int) -> None:
        """Takes the mark of a handler away that has returned."""
        if place:
            self._cell[place] = 0
            self._free.append(place)
        else:
            self._cell[1] -= 1

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
                # A process that the handler forked shares the mark: it is the parent's.
                if not forks.is_fork:
                    cell[0] = 0
            value, error = None, None
            try:
                value = yield waited
            except BaseException as raised:
                error = raised
