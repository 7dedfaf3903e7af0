"""Marks running handlers in shared memory, so that the supervisor finds the culprit of a crash.

A shared file outlives the process. Nothing else would be known of a handler that kills its process
at its first step.
"""

from __future__ import annotations

import mmap
from collections.abc import Coroutine, Generator
from typing import Any, Final

from laneway import forks

# Handlers that can be marked at once; any beyond are only counted.
MAX_MARKS: Final = 16384
# Two cells come first: the handler that holds the event loop, and the number not marked.
_HEAD: Final = 2
SIZE: Final = 8 * (_HEAD + MAX_MARKS)


class LoopMarker:
    """Shared cells with the seq of the handler that holds the event loop, and of all begun."""

    def __init__(self, fd: int) -> None:
        self._map = mmap.mmap(fd, SIZE)
        self._cell = memoryview(self._map).cast("q")
        self._free = list(range(_HEAD + MAX_MARKS - 1, _HEAD - 1, -1))

    def read(self) -> int:
        """The seq of the handler that holds the event loop; 0 if none does."""
        return self._cell[0]

    def begun(self) -> list[int] | None:
        """The handlers called and not returned; None if there were too many to mark."""
        return None if self._cell[1] else [seq for seq in self._cell[_HEAD:] if seq]

    def begin(self, seq: int) -> int:
        """Mark a handler that is called now; return the index of its mark."""
        if not self._free:
            self._cell[1] += 1
            return 0
        place = self._free.pop()
        self._cell[place] = seq
        return place

    def end(self, place: int) -> None:
        """Remove the mark of a handler that has returned."""
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
                # A forked process shares the cell, which belongs to its parent.
                if not forks.is_fork:
                    cell[0] = 0
            value, error = None, None
            try:
                value = yield waited
            except BaseException as raised:
                error = raised
