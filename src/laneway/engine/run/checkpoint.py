"""The checkpoint of a handler, stored together with the positions of its tracks."""

from __future__ import annotations

from typing import Any, Final

from laneway.domain.payload import PayloadLimits, encode
from laneway.errors import InvalidInput, InvalidResult

TRACKED: Final = "_tracked"


class Checkpoint:
    """The state that the handler saves, and the positions of `ctx.track` by name."""

    __slots__ = ("_limits", "state", "tracked")

    def __init__(self, stored: Any, limits: PayloadLimits) -> None:
        self._limits = limits
        self.state = stored
        self.tracked: dict[str, int] = {}
        if isinstance(stored, dict) and isinstance(stored.get(TRACKED), dict):
            self.tracked = {k: v for k, v in stored[TRACKED].items() if isinstance(v, int)}
            self.state = {k: v for k, v in stored.items() if k != TRACKED} or None

    def text(self) -> str:
        """State and positions as JSON text; InvalidResult if they cannot be stored."""
        state = self.state
        if self.tracked:
            if state is not None and not isinstance(state, dict):
                raise InvalidResult(
                    "checkpoint", "must be an object (a dict) in a handler that uses ctx.track"
                )
            state = {**(state or {}), TRACKED: self.tracked}
        try:
            return encode(state, limits=self._limits, field="checkpoint")
        except InvalidInput as error:
            raise InvalidResult(error.field, error.rule) from None
