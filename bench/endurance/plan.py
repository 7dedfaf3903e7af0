"""Durations and windows of a run; all scale with its minutes."""

from __future__ import annotations

from dataclasses import dataclass

WHOLE_MINUTES = 30.0
LOAD = 0.6


@dataclass(frozen=True, slots=True)
class Window:
    """Seconds from the start of a run."""

    begin: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.begin

    def __contains__(self, at: float) -> bool:
        return self.begin <= at < self.end


@dataclass(frozen=True, slots=True)
class Plan:
    """The parts of a run of so many minutes; the names of minutes are those of a whole run."""

    minutes: float

    def __post_init__(self) -> None:
        if not self.minutes >= 1:
            raise ValueError("MINUTES: at least 1")

    @property
    def is_whole(self) -> bool:
        return self.minutes >= WHOLE_MINUTES

    def _window(self, begin: float, end: float) -> Window:
        """A window in minutes of a whole run."""
        part = self.minutes / WHOLE_MINUTES * 60
        return Window(begin * part, end * part)

    @property
    def calibration(self) -> Window:
        """As fast as jobs end; a minute at most, its first third is not counted."""
        seconds = min(60.0, max(10.0, self.minutes * 4))
        return Window(seconds / 3, seconds)

    @property
    def steady_s(self) -> float:
        return self._window(0, 30).end

    @property
    def first(self) -> Window:
        return self._window(5, 10)

    @property
    def last(self) -> Window:
        return self._window(25, 30)

    # The second run: five minutes, twenty with an open transaction, ten without.

    @property
    def held_s(self) -> float:
        return self._window(0, 35).end

    @property
    def before_hold(self) -> Window:
        return self._window(0.5, 5)

    @property
    def hold(self) -> Window:
        return self._window(5, 25)

    @property
    def end_of_hold(self) -> Window:
        """The last five minutes with the open transaction."""
        return self._window(20, 25)

    @property
    def sample_s(self) -> float:
        return min(10.0, max(1.0, self.minutes / 3))

    @property
    def walk_s(self) -> float:
        """The pause between two walks of retention: as in production, in a whole run."""
        return min(300.0, self._window(0, 5).end)
