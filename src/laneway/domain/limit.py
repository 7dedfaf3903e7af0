"""Limits: named resources with a ceiling, and the ranges of their settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Final, NamedTuple

from laneway.domain.change_rules import Check, check_whole, optional, validate_settings
from laneway.domain.lane import check_lane_name
from laneway.errors import InvalidInput

SCOPES: Final = ("cluster", "host", "process")


@dataclass(frozen=True, slots=True)
class Limit:
    """A named resource: how many may use it at once, and how many may start per period.

    `max_concurrent`: None is unbounded, with 0 nothing starts. `scope` is what counts together: the
    whole cluster, each host, or each worker process.
    """

    name: str
    max_concurrent: int | None = 1
    rate_count: int | None = None
    rate_period_s: float | None = None
    scope: str = "cluster"
    updated_at: datetime | None = None
    updated_by: str | None = None

    @classmethod
    def of(cls, settings: Mapping[str, object]) -> Limit:
        """A new limit from untrusted settings; the others take their defaults."""
        return cls(**validate_limit_change(settings, new=True))  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, object]:
        """The limit as JSON values under the contract's names."""
        return {
            "name": self.name,
            "max_concurrent": self.max_concurrent,
            "rate_count": self.rate_count,
            "rate_period_s": self.rate_period_s,
            "scope": self.scope,
            "updated_at": self.updated_at.isoformat() if self.updated_at else None,
            "updated_by": self.updated_by,
        }


@dataclass(frozen=True, slots=True)
class LimitStatus:
    """A limit, how many hold it now, and how many due jobs of types that need it wait.

    `busiest` is the count of the busiest site, because `max_concurrent` applies to each site.
    `holders` names some holders: jobs by type, and processes outside of jobs by host.
    """

    limit: Limit
    running: int
    busiest: int
    waiting: int
    is_capped: bool
    holders: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        return {
            **self.limit.to_dict(),
            "running": self.running,
            "busiest": self.busiest,
            "waiting": self.waiting,
            "waiting_is_capped": self.is_capped,
            "holders": list(self.holders),
        }


class Tuned(NamedTuple):
    """A limit as it is now, and whether this change created it."""

    limit: Limit
    is_new: bool


SEEDED_LIMITS: Final[tuple[Limit, ...]] = (
    Limit("anthropic", max_concurrent=4),
    Limit("ollama", max_concurrent=1),
    Limit("openai", max_concurrent=8),
)


def check_limit_name(value: object, field: str = "name") -> str:
    """A limit's name, by the rules of lanes."""
    return check_lane_name(value, field)


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


def _period(field: str, value: object) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise InvalidInput(field, "must be a number of seconds from 0.1 to 86400")
    if not 0.1 <= value <= 86400:
        raise InvalidInput(field, "must be from 0.1 to 86400")
    return float(value)


def _scope(field: str, value: object) -> str:
    if not isinstance(value, str) or value not in SCOPES:
        raise InvalidInput(field, f"must be one of {', '.join(SCOPES)}")
    return value


_CHECKS: Final[dict[str, Check]] = {
    "name": lambda field, value: check_limit_name(value, field),
    "max_concurrent": optional(check_whole(0, 10_000)),
    "rate_count": optional(check_whole(1, 1_000_000)),
    "rate_period_s": optional(_period),
    "scope": _scope,
}

_FIELDS: Final = frozenset(field.name for field in fields(Limit))
