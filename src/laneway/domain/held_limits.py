"""The limits that code is inside of: its own task or thread took them, or the one that began it.

Code that holds all of a limit and asks for one more waits for itself. A task that outlives the
block it was started in does not: the block has given its limits back.
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


# Tasks copy the value when they begin, but all see the same blocks end.
_blocks: ContextVar[tuple[_Block, ...]] = ContextVar("laneway held limits", default=())


def held_around(owner: Hashable, names: Collection[str]) -> dict[str, int]:
    """How often the owner holds each of the limits around the code that asks; none at 0."""
    held = (one.names for one in _blocks.get() if one.is_open and one.owner == owner)
    return dict(Counter(name for block in held for name in block if name in names))


@contextmanager
def inside(owner: Hashable, names: Iterable[str]) -> Iterator[None]:
    """Mark the code inside, and tasks that it starts, as inside of the limits."""
    block = _Block(owner, names)
    _blocks.set((*_blocks.get(), block))
    try:
        yield
    finally:
        # Blocks may end in another order than they began, or in another task.
        block.is_open = False
        _blocks.set(tuple(one for one in _blocks.get() if one.is_open))
