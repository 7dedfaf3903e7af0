"""Abbreviated job ids: parse, look up, and the shortest prefix that finds a job again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple
from uuid import UUID

from laneway.domain.annotations import Doc
from laneway.errors import InvalidInput, NotFound

DIGITS: Final = 32
LEAST_DIGITS: Final = 4
# The time of a UUIDv7 in milliseconds: jobs of other milliseconds differ within these digits.
TIME_DIGITS: Final = 12
# Ids named for an ambiguous prefix, and prefixes of one request.
MOST_IDS: Final = 5
MOST_PREFIXES: Final = 200
# Of those, the ones with an end: for each, many jobs are examined.
MOST_ENDS: Final = 5
_HEX: Final = re.compile(r"[0-9a-f]+", re.ASCII)
_GAP: Final = re.compile(r"…|\.{2,3}")


class IdRange(NamedTuple):
    """The ids that begin with a prefix."""

    first: UUID
    last: UUID


@dataclass(frozen=True, slots=True)
class IdPrefix:
    """The first hexadecimal digits of a job id, and perhaps its last ones; without hyphens."""

    digits: str
    end: str = ""

    @property
    def range(self) -> IdRange:
        return IdRange(UUID(self.digits.ljust(DIGITS, "0")), UUID(self.digits.ljust(DIGITS, "f")))

    @property
    def text(self) -> str:
        """The form that `parse_id` reads."""
        return f"{self.digits}…{self.end}" if self.end else self.digits

    def __str__(self) -> str:
        return f"{hyphenated(self.digits)}…{self.end}" if self.end else hyphenated(self.digits)


@dataclass(frozen=True, slots=True)
class IdMatches:
    """The jobs in reach whose ids begin with a prefix."""

    prefix: str
    ids: Annotated[tuple[UUID, ...], Doc(f"In order, at most {MOST_IDS}")]
    is_more: Annotated[bool, Doc("More jobs have this prefix, or may have: not all were examined")]

    @property
    def only(self) -> UUID | None:
        """The id, if exactly one matches."""
        return self.ids[0] if len(self.ids) == 1 and not self.is_more else None


def parse_id(text: str, field: str = "id") -> UUID | IdPrefix:
    """A full id, the prefix of one (at least four digits), or a prefix, `…` and the last digits."""
    digits, gap, end = _parts(text.strip().lower().replace("-", ""))
    if not _HEX.fullmatch(digits + end) or len(digits + end) > DIGITS or (gap and not end):
        raise InvalidInput(
            field, "must be a UUID or its first characters: hexadecimal digits and hyphens"
        )
    if len(digits) == DIGITS:
        return UUID(digits)
    if len(digits) < LEAST_DIGITS:
        raise InvalidInput(field, f"must have at least {LEAST_DIGITS} digits of the id")
    return IdPrefix(digits, end)


def _parts(text: str) -> tuple[str, str, str]:
    gap = _GAP.search(text)
    if gap is None:
        return text, "", ""
    return text[: gap.start()], gap.group(), text[gap.end() :]


def hyphenated(digits: str) -> str:
    """The digits with the hyphens of a UUID; never ends with one."""
    groups = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return "-".join(group for group in groups if group)


def missing_prefix(prefix: IdPrefix) -> NotFound:
    return NotFound(f"no job id begins with {prefix}")


def only_match(given: IdPrefix, found: IdMatches) -> UUID:
    """The job that was meant, or an error that says why none was found."""
    if found.only is not None:
        return found.only
    if not found.ids and not found.is_more:
        raise missing_prefix(given)
    if len(found.ids) > 1:
        raise InvalidInput("ID", f"several job ids begin with {given}; write more digits of one")
    raise InvalidInput(
        "ID",
        f"too many job ids begin with {hyphenated(given.digits)}, and not all were examined;"
        " write more of its first digits",
    )


def shortened(matches: Mapping[UUID, IdMatches]) -> dict[UUID, str]:
    """The shortest prefix of each id that no other job has, by the jobs of its millisecond."""
    return {
        job_id: str(job_id) if near.is_more else _shortest(job_id.hex, near.ids)
        for job_id, near in matches.items()
    }


def _shortest(digits: str, near: Iterable[UUID]) -> str:
    needed = (_common(digits, other.hex) + 1 for other in near if other.hex != digits)
    return hyphenated(digits[: max(needed, default=TIME_DIGITS)])


def _common(one: str, other: str) -> int:
    """The number of leading digits that both have."""
    return next(at for at, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
