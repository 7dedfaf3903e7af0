"""Lanes and limits that an application declares in code, checked when they are written down.

lw = Laneway(
    lanes=[Lane("docs", max_slots=20)],
    limits=[Limit("llm", max_concurrent=4, rate="20/s")],
)
"""

from __future__ import annotations

from typing import Any, Final, TypedDict, Unpack

from laneway.domain import lane, limit
from laneway.domain.lane import LaneSettings
from laneway.domain.limit import LimitScope, MaxConcurrent
from laneway.domain.suggestion import suggest
from laneway.errors import ConfigError, InvalidInput


class Lane(lane.Lane):
    """A lane to create if the database has none of this name; an existing one is never changed.

    Settings that are not given are those of a new lane: 1 slot, a poll every 5 s, stale after
    30 min. `max_slots=None` is unbounded.
    """

    def __init__(self, name: str, **settings: Unpack[LaneSettings]) -> None:
        try:
            given: dict[str, Any] = lane.validate_lane_change({"name": name, **settings}, new=True)
        except InvalidInput as error:
            raise ConfigError(f"lane {name!r}: {error}") from error
        super().__init__(**given, named=frozenset(given))


class DeclaredLimit(TypedDict, total=False):
    """The settings of a limit in code; `rate` is starts per period, such as 20/s or 500/1m."""

    max_concurrent: MaxConcurrent
    rate: str | None
    scope: LimitScope


_SETTINGS: Final = tuple(DeclaredLimit.__annotations__)


class Limit(limit.Limit):
    """A limit to create if the database has none of this name; an existing one is never changed.

    `max_concurrent` (1): holders at once; None: no ceiling, 0: nothing that needs it starts.
    `rate`: starts per period, such as "20/s" or "500/1m". `scope` ("cluster", "host", "process"):
    where holders are counted together.
    """

    given: frozenset[str]

    def __init__(self, name: str, **settings: Unpack[DeclaredLimit]) -> None:
        try:
            super().__init__(**_checked(name, settings))
        except InvalidInput as error:
            field = "rate" if error.field.startswith("rate_") else error.field
            raise ConfigError(f"limit {name!r}: {field}: {error.rule}") from error
        object.__setattr__(self, "given", frozenset(settings))

    def differences(self, other: limit.Limit) -> dict[str, tuple[object, object]]:
        """The given settings that differ from the other limit: name → (here, there)."""
        return {
            name: (getattr(self, name), getattr(other, name))
            for name in _SETTINGS
            if name in self.given and getattr(self, name) != getattr(other, name)
        }


def _checked(name: str, settings: DeclaredLimit) -> dict[str, Any]:
    for field in settings:
        if field not in _SETTINGS:
            known = ", ".join(_SETTINGS)
            near = suggest(field, _SETTINGS)
            raise InvalidInput(field, f"is not a setting of a limit; use one of {known}{near}")
    given: dict[str, Any] = {"name": name, **settings}
    rate = given.pop("rate", None)
    if rate is not None:
        given["rate_count"], given["rate_period_s"] = limit.parse_rate(rate)
    return limit.validate_limit_change(given, new=True)
