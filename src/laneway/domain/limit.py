"""Limits: named resources with a ceiling, and the ranges of their settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Annotated, Final, Literal, NamedTuple, TypedDict
from uuid import UUID

from annotated_types import Interval

from laneway.domain.annotations import INLINE, CheckedBy, Doc, NullWord
from laneway.domain.change_rules import Check, checks_of, validate_settings
from laneway.domain.lane import LaneName, check_lane_name
from laneway.errors import InvalidInput


def check_limit_name(value: object, field: str = "name") -> str:
    """A limit's name, by the rules of lanes."""
    return check_lane_name(value, field)


def _check_period(value: object, field: str) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise InvalidInput(field, "must be a number of seconds from 0.1 to 86400")
    if not 0.1 <= value <= 86400:
        raise InvalidInput(field, "must be from 0.1 to 86400")
    return float(value)


_PERIODS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_RATE: Final = re.compile(r"(\d{1,18})/(?=.)(\d{1,18}(?:\.\d{1,9})?)?(ms|s|m|h|d)?", re.ASCII)


def parse_rate(text: object, field: str = "rate") -> tuple[int, float]:
    """The count and the seconds of `20/s` or `500/1m`; ranges are checked elsewhere."""
    found = _RATE.fullmatch(text.replace(" ", "")) if isinstance(text, str) else None
    if found is None:
        raise InvalidInput(field, "must be a count per period, such as 20/s or 500/1m")
    return int(found[1]), float(found[2] or 1) * _PERIODS[found[3] or "s"]


def rate_text(count: int | None, period_s: float | None) -> str:
    """A rate as `parse_rate` reads it, or `none`."""
    if count is None or period_s is None:
        return "none"
    return f"{count}/s" if period_s == 1 else f"{count}/{period_s:.9g}s"


LimitName = LaneName
MaxConcurrent = Annotated[
    int | None,
    Interval(ge=0, le=10_000),
    Doc("Most holders at once; 0: nothing that needs it starts"),
    NullWord("unbounded"),
]
RateCount = Annotated[
    int | None, Interval(ge=1, le=1_000_000), Doc("Starts per `rate_period_s`; null: no rate")
]
RatePeriodS = Annotated[
    float | None,
    Interval(ge=0.1, le=86_400),
    CheckedBy(_check_period),
    Doc("Required with `rate_count`"),
]
LimitScope = Annotated[
    Literal["cluster", "host", "process"], Doc("Where holders are counted together")
]


class LimitSettings(TypedDict, total=False):
    """The settings of a limit, as a change names some of them."""

    max_concurrent: MaxConcurrent
    rate_count: RateCount
    rate_period_s: RatePeriodS
    scope: LimitScope


@dataclass(frozen=True, slots=True)
class Limit:
    """A named resource: how many may use it at once, and how many may start per period.

    `max_concurrent`: None is unbounded, with 0 nothing starts. `scope`: holders are counted for the
    whole cluster, for each host, or for each worker process.
    """

    name: str
    max_concurrent: MaxConcurrent = 1
    rate_count: RateCount = None
    rate_period_s: RatePeriodS = None
    scope: LimitScope = "cluster"
    updated_at: datetime | None = None
    updated_by: str | None = None

    @classmethod
    def of(cls, settings: Mapping[str, object]) -> Limit:
        """A new limit from untrusted settings; settings that are not given take their defaults."""
        return cls(**validate_limit_change(settings, new=True))  # type: ignore[arg-type]

    @property
    def rate(self) -> str:
        """The rate as `20/s`, or `none`."""
        return rate_text(self.rate_count, self.rate_period_s)


@dataclass(frozen=True, slots=True)
class HoldingJob:
    """A running job that holds a limit, for its whole run or for calls."""

    id: UUID
    job_type: str
    lane: str
    claimed_by: UUID
    worker: str | None
    claimed_at: datetime
    held: Annotated[int, Doc("How often it holds the limit: once for each call at a time")]


@dataclass(frozen=True, slots=True)
class LimitStatus:
    """A limit, how many hold it now, and how many due jobs of types that need it wait."""

    limit: Annotated[Limit, INLINE]
    running: int
    busiest: Annotated[int, Doc("The holders at the host or process with the most")]
    waiting: int
    waiting_is_capped: Annotated[bool, Doc("There are more than `waiting`")]
    holders: Annotated[
        tuple[str, ...], Doc("Some of the holders: jobs by type, processes by host")
    ] = ()
    jobs: Annotated[
        tuple[HoldingJob, ...], Doc("Running jobs that hold it, the longest first; at most 20")
    ] = ()


class Tuned(NamedTuple):
    """A limit as it is now, and whether this change created it."""

    limit: Limit
    is_new: bool


def unbounded(name: str) -> Limit:
    """The limit that is created for a name that code uses and that is not configured."""
    return Limit(name, max_concurrent=None)


SEEDED_LIMITS: Final[tuple[Limit, ...]] = (
    Limit("anthropic", max_concurrent=4),
    Limit("ollama", max_concurrent=1),
    Limit("openai", max_concurrent=8),
)


def validate_limit_change(change: Mapping[str, object], *, new: bool = False) -> dict[str, object]:
    """The checked settings of a limit that a change names; InvalidInput names field and rule.

    A rate is two settings that are given together. A new limit (`new=True`) needs a `name`; a
    change of an existing limit may not have one.
    """
    required = ("name",) if new else ()
    checked = validate_settings("limit", change, _CHECKS, _FIELDS, required=required)
    _check_rate(checked)
    return checked


def _check_rate(checked: Mapping[str, object]) -> None:
    for field, other in (("rate_count", "rate_period_s"), ("rate_period_s", "rate_count")):
        if field in checked and (
            other not in checked or (checked[field] is None) != (checked[other] is None)
        ):
            raise InvalidInput(other, f"must be given together with {field}; null removes both")


_CHECKS: Final[dict[str, Check]] = {
    "name": lambda field, value: check_limit_name(value, field),
    **checks_of(LimitSettings),
}
_FIELDS: Final = frozenset(field.name for field in fields(Limit))
