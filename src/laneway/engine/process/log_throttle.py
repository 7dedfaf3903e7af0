"""Log lines about many of a kind: the first few one by one, then one a second tells of the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Generic, TypeVar

# Of a kind; beyond that, one line per interval tells how many, for as long as it goes on.
MOST: Final = 10
INTERVAL_S: Final = 1.0

T = TypeVar("T")


class Rest(Generic[T]):
    """What was held back: how many, how many of them were grave, the last one."""

    __slots__ = ("count", "grave", "last")

    def __init__(self, last: T) -> None:
        self.last = last
        self.count = self.grave = 0


class _Burst(Generic[T]):
    """A time in which there is something to tell of a kind."""

    __slots__ = ("rest", "timer", "told")

    def __init__(self, timer: asyncio.TimerHandle) -> None:
        self.timer = timer
        self.told = 0
        self.rest: Rest[T] | None = None


class LogThrottle(Generic[T]):
    """Says which are told by themselves; has the rest told."""

    def __init__(self, tell_rest: Callable[[str, Rest[T]], None]) -> None:
        self._tell_rest = tell_rest
        self._spells: dict[str, _Burst[T]] = {}

    def admit(self, kind: str, one: T, *, is_grave: bool = False) -> bool:
        """True: to be told now. False: it is held back, and counted."""
        spell = self._spells.get(kind)
        if spell is None:
            spell = self._spells[kind] = _Burst(self._set_timer(kind))
        if spell.told < MOST:
            spell.told += 1
            return True
        if spell.rest is None:
            spell.rest = Rest(one)
        spell.rest.last = one
        spell.rest.count += 1
        spell.rest.grave += is_grave
        return False

    def end(self, kind: str) -> None:
        """The interval is over: tells of the rest; if there was none, all is told again."""
        spell = self._spells[kind]
        if spell.rest is None:
            del self._spells[kind]
            return
        self._tell_rest(kind, spell.rest)
        spell.rest = None
        spell.timer = self._set_timer(kind)

    def close(self) -> None:
        """Tells at once what was held back."""
        for kind, spell in self._spells.items():
            spell.timer.cancel()
            if spell.rest is not None:
                self._tell_rest(kind, spell.rest)
        self._spells.clear()

    def _set_timer(self, kind: str) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(INTERVAL_S, self.end, kind)
