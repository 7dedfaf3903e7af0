"""Bounds of grants: the highest priority, and how many jobs and events of a principal may wait."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass, fields, replace
from typing import Annotated, Final, Literal

from annotated_types import Interval

from laneway.domain.annotations import Doc
from laneway.domain.change_rules import checks_of
from laneway.domain.job import PRIORITY_RANGE
from laneway.errors import InvalidInput

_MAX_COUNT: Final = 2**31 - 1
_MAX_BYTES: Final = 2**53 - 1
# Permissions whose use is bounded.
BOUNDED: Final = frozenset({
    "jobs:submit", "jobs:cancel", "workers:manage", "workers:claim", "schedules:manage",
    "events:send",
})  # fmt: skip
# A grant with this permission has no bounds unless it sets them.
_UNBOUND_PERMISSION: Final = "workers:manage"


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds in force; the largest values bound nothing."""

    max_priority: int = PRIORITY_RANGE[1]
    max_queued: int = _MAX_COUNT
    max_queued_bytes: int = _MAX_BYTES
    max_types: int = _MAX_COUNT

    @property
    def needs_counting(self) -> bool:
        """Whether jobs must be counted to enforce them."""
        return (self.max_queued, self.max_queued_bytes, self.max_types) != (
            _MAX_COUNT,
            _MAX_BYTES,
            _MAX_COUNT,
        )

    def allows(self, other: Bounds) -> bool:
        """Whether the other bounds allow nothing more."""
        return all(getattr(self, f.name) >= getattr(other, f.name) for f in fields(self))


UNBOUND: Final = Bounds()
# Bounds of a grant that sets none.
Usual = Literal["usual"]
USUAL_WORD: Final[Usual] = "usual"
USUAL: Final = Bounds(max_priority=100, max_queued=100_000, max_queued_bytes=1024**3, max_types=100)

_Priority = Annotated[int, Interval(ge=PRIORITY_RANGE[0], le=PRIORITY_RANGE[1])]
_Count = Annotated[int, Interval(ge=0, le=_MAX_COUNT)]
_Bytes = Annotated[int, Interval(ge=0, le=_MAX_BYTES)]
MaxPriority = Annotated[
    _Priority | Usual | None,
    Doc(
        "The highest priority it may set; null: unchanged; "
        "`usual`, the default of a new grant: 100, or any with workers:manage"
    ),
]
MaxQueued = Annotated[
    _Count | Usual | None,
    Doc(
        "Waiting jobs of the principal, and apart from them its kept events;"
        " `usual`: 100,000, or any number"
    ),
]
MaxQueuedBytes = Annotated[
    _Bytes | Usual | None,
    Doc("Total payload bytes of those jobs, or events; `usual`: 1 GiB, or any number"),
]
MaxTypes = Annotated[
    _Count | Usual | None,
    Doc("Job types that no worker has published; `usual`: 100, or any number"),
]


@dataclass(frozen=True, slots=True)
class GrantBounds:
    """The bounds that a grant sets; None: the usual bound of its role."""

    max_priority: _Priority | None = None
    max_queued: _Count | None = None
    max_queued_bytes: _Bytes | None = None
    max_types: _Count | None = None

    def in_force(self, permissions: Collection[str]) -> Bounds:
        """The bounds of a grant of a role with these permissions."""
        usual = UNBOUND if _UNBOUND_PERMISSION in permissions else USUAL
        own = {name: value for name, value in asdict(self).items() if value is not None}
        return Bounds(**{**asdict(usual), **own})

    def check(self) -> GrantBounds:
        """Refuse a bound that is out of range."""
        for name, check in checks_of(GrantBounds).items():
            check(name, getattr(self, name))
        return self


@dataclass(frozen=True, slots=True)
class BoundsChange:
    """A change of a grant's bounds; None keeps a bound, `usual` removes it."""

    max_priority: MaxPriority = None
    max_queued: MaxQueued = None
    max_queued_bytes: MaxQueuedBytes = None
    max_types: MaxTypes = None

    @property
    def given(self) -> GrantBounds:
        """The bounds that are numbers."""
        return GrantBounds(**{k: v for k, v in asdict(self).items() if v != USUAL_WORD})

    @property
    def cleared(self) -> list[str]:
        """The names of the bounds that are removed."""
        return [name for name, value in asdict(self).items() if value == USUAL_WORD]

    def applied_to(self, before: GrantBounds) -> GrantBounds:
        """The bounds of a grant after this change."""
        given = {name: value for name, value in asdict(self.given).items() if value is not None}
        return replace(before, **{**dict.fromkeys(self.cleared), **given})

    def check(self) -> BoundsChange:
        """Refuse a bound that is out of range."""
        self.given.check()
        return self


NO_BOUNDS: Final = GrantBounds()
NO_CHANGE: Final = BoundsChange()


def widest(bounds: Iterable[Bounds]) -> Bounds:
    """The largest of each bound: what several grants allow together."""
    return _combine(max, list(bounds))


def narrowest(bounds: Iterable[Bounds]) -> Bounds:
    """The smallest of each bound: what holds for all of several jobs; unbound if there is none."""
    return _combine(min, list(bounds) or [UNBOUND])


def _combine(pick: Callable[[Iterable[int]], int], bounds: list[Bounds]) -> Bounds:
    if len(bounds) == 1:
        return bounds[0]
    return Bounds(
        **{f.name: pick(getattr(each, f.name) for each in bounds) for f in fields(Bounds)}
    )


def check_priority_bound(priority: int | None, bounds: Bounds, field: str = "priority") -> None:
    """Refuse a priority that is higher than a caller's grants allow."""
    if priority is not None and priority > bounds.max_priority:
        raise InvalidInput(
            field,
            f"at most {bounds.max_priority} by your grants, not {priority}:"
            " ask for a grant with a higher max_priority",
        )
