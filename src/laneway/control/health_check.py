"""One finding of `laneway doctor`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Finding(StrEnum):
    """The result of a check: warn is worth knowing, fail blocks work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One check; `next` is the command or setting that fixes the finding."""

    name: str
    finding: Finding
    message: str
    next: str | None = None

    def to_dict(self) -> dict[str, object]:
        return {
            "name": self.name,
            "finding": self.finding.value,
            "message": self.message,
            "next": self.next,
        }


def ok(name: str, message: str) -> HealthCheck:
    return HealthCheck(name, Finding.OK, message)


def warn(name: str, message: str, step: str) -> HealthCheck:
    return HealthCheck(name, Finding.WARN, message, step)


def fail(name: str, message: str, step: str) -> HealthCheck:
    return HealthCheck(name, Finding.FAIL, message, step)


def and_more(found: Sequence[object], most: int | None = None) -> str:
    """The number of findings besides the first, in words."""
    others = len(found) - 1
    shown = f"{most - 1}+" if most is not None and len(found) > most else str(others)
    return f", and {shown} more" if others else ""
