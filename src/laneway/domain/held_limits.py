"""The limits that the current task or thread holds, or the task that started it.

Code that holds all of a limit and asks for one more would wait for itself. A task that outlives the
block that started it does not: the block has released its limits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class _Block:
    """A `with` block that holds limits for an owner: a client or a job."""

    __slots__ = ("is_open", "names", "owner")

    def __init__(self, owner: Hashable, names: Iterable[str]) -> None:
        self.owner = owner
        self.names = tuple(dict.fromkeys(names))
        self.is_open = True


# Tasks copy the tuple when they start, but share its blocks and see them close.
_blocks: ContextVar[tuple[_Block, ...]] = ContextVar("laneway held limits", default=())


def count_held(owner: Hashable, names: Collection[str]) -> dict[str, int]:
    """Count the holds of these limits, for the owner, in the code around the caller; no zeros."""
    blocks = (block for block in _blocks.get() if block.is_open and block.owner == owner)
    return dict(Counter(name for block in blocks for name in block.names if name in names))


@contextmanager
def mark_held(owner: Hashable, names: Iterable[str]) -> Iterator[None]:
    """Mark the code in a `with` block, and tasks that it starts, as holding the limits."""
    block = _Block(owner, names)
    _blocks.set((*_blocks.get(), block))
    try:
        yield
    finally:
        # Blocks may close in another order than they opened, or in another task.
        block.is_open = False
        _blocks.set(tuple(block for block in _blocks.get() if block.is_open))
