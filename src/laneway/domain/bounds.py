"""Bounds of grants: the highest priority, and how many jobs of a principal may wait."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, fields, replace
from typing import Final, Literal

from laneway.domain.job import PRIORITY_RANGE
from laneway.errors import InvalidInput

_MOST: Final = 2**31 - 1
_MOST_BYTES: Final = 2**53 - 1
# Permissions whose use is bounded.
BOUNDED: Final = frozenset({"jobs:submit", "jobs:cancel", "workers:manage", "schedules:manage"})
# A grant with this permission has no bounds unless it sets them.
_UNBOUND_PERMISSION: Final = "workers:manage"


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds in force; the largest values bound nothing."""

    max_priority: int = PRIORITY_RANGE[1]
    max_queued: int = _MOST
    max_queued_bytes: int = _MOST_BYTES
    max_types: int = _MOST

    @property
    def counts(self) -> bool:
        """Whether jobs must be counted to enforce them."""
        return (self.max_queued, self.max_queued_bytes, self.max_types) != (
            _MOST,
            _MOST_BYTES,
            _MOST,
        )

    def allows(self, other: Bounds) -> bool:
        """Whether the other bounds allow nothing more."""
        return all(getattr(self, f.name) >= getattr(other, f.name) for f in fields(self))


UNBOUND: Final = Bounds()
# Bounds of a grant that sets none.
Usual = Literal["usual"]
USUAL_WORD: Final[Usual] = "usual"
USUAL: Final = Bounds(max_priority=100, max_queued=100_000, max_queued_bytes=1024**3, max_types=100)


@dataclass(frozen=True, slots=True)
class GrantBounds:
    """The bounds that a grant sets; None: what is usual for its role."""

    max_priority: int | None = None
    max_queued: int | None = None
    max_queued_bytes: int | None = None
    max_types: int | None = None

    def in_force(self, permissions: Collection[str]) -> Bounds:
        """The bounds of a grant of a role with these permissions."""
        usual = UNBOUND if _UNBOUND_PERMISSION in permissions else USUAL
        own = {name: value for name, value in asdict(self).items() if value is not None}
        return Bounds(**{**asdict(usual), **own})

    def check(self) -> GrantBounds:
        """Refuse a bound that is out of range."""
        low, high = PRIORITY_RANGE
        ranges = {
            "max_priority": (low, high),
            "max_queued": (0, _MOST),
            "max_queued_bytes": (0, _MOST_BYTES),
            "max_types": (0, _MOST),
        }
        for name, (least, most) in ranges.items():
            value = getattr(self, name)
            if value is None:
                continue
            if type(value) is not int or not least <= value <= most:
                raise InvalidInput(name, f"must be a whole number from {least} to {most}")
        return self


@dataclass(frozen=True, slots=True)
class BoundsChange:
    """A change of a grant's bounds; None keeps a bound, `usual` removes it."""

    max_priority: int | Usual | None = None
    max_queued: int | Usual | None = None
    max_queued_bytes: int | Usual | None = None
    max_types: int | Usual | None = None

    @property
    def given(self) -> GrantBounds:
        """The bounds that are numbers."""
        return GrantBounds(**{k: v for k, v in asdict(self).items() if v != USUAL_WORD})

    @property
    def cleared(self) -> list[str]:
        """The names of the bounds that are removed."""
        return [name for name, value in asdict(self).items() if value == USUAL_WORD]

    def over(self, before: GrantBounds) -> GrantBounds:
        """The bounds that result."""
        given = {name: value for name, value in asdict(self.given).items() if value is not None}
        return replace(before, **{**dict.fromkeys(self.cleared), **given})

    def check(self) -> BoundsChange:
        """Refuse a bound that is out of range."""
        self.given.check()
        return self


NO_BOUNDS: Final = GrantBounds()
NO_CHANGE: Final = BoundsChange()


def widest(several: Iterable[Bounds]) -> Bounds:
    """The largest of each bound: what several grants allow together."""
    found = list(several)
    if len(found) == 1:
        return found[0]
    return Bounds(**{f.name: max(getattr(each, f.name) for each in found) for f in fields(Bounds)})


def narrowest(several: Iterable[Bounds]) -> Bounds:
    """The smallest of each bound: what holds for all of several jobs; unbound if there is none."""
    found = list(several) or [UNBOUND]
    if len(found) == 1:
        return found[0]
    return Bounds(**{f.name: min(getattr(each, f.name) for each in found) for f in fields(Bounds)})


def check_priority_bound(priority: int | None, bounds: Bounds, field: str = "priority") -> None:
    """Refuse a priority that is higher than a caller's grants allow."""
    if priority is not None and priority > bounds.max_priority:
        raise InvalidInput(
            field,
            f"at most {bounds.max_priority} by your grants, not {priority}:"
            " ask for a grant with a higher max_priority",
        )
