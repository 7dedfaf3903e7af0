"""The limits that code is inside of: its own task or thread took them, or the task that began it.

Whoever holds all there is of a limit and asks for one more waits for itself. Its own other calls
are no such thing: they give theirs back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from laneway.domain.claim import Claim

_around: ContextVar[tuple[tuple[Claim, str], ...]] = ContextVar("laneway limits", default=())


def held_around(claim: Claim, names: Sequence[str]) -> dict[str, int]:
    """How often each of the limits is held around the code that asks; none that is not."""
    return dict(Counter(name for job, name in _around.get() if job == claim and name in names))


@contextmanager
def inside(claim: Claim, names: Sequence[str]) -> Iterator[None]:
    """What runs inside of this, and what that begins, is inside of the limits."""
    mine = [(claim, name) for name in names]
    _around.set((*_around.get(), *mine))
    try:
        yield
    finally:
        # Not back to what was: they may be left in another order, or in another task.
        left = list(_around.get())
        for one in mine:
            if one in left:
                left.remove(one)
        _around.set(tuple(left))
