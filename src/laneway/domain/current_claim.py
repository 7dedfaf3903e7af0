"""The attempt whose handler the current task or thread belongs to."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from laneway.domain.claim import Claim

# None outside of handlers. Tasks that a handler starts inherit it.
current_claim: Final[ContextVar[Claim | None]] = ContextVar("laneway claim", default=None)
# Whether that handler runs on an event loop of its worker, and not in a thread.
is_on_loop: Final[ContextVar[bool]] = ContextVar("laneway on loop", default=False)


def bind(claim: Claim, *, on_loop: bool) -> None:
    """Bind the current context to the attempt of a handler."""
    current_claim.set(claim)
    is_on_loop.set(on_loop)
