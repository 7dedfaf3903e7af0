"""A finding of the checker."""

from __future__ import annotations

from typing import NamedTuple


class Violation(NamedTuple):
    """A law that did not hold."""

    law: str
    job: str | None
    text: str

    def __str__(self) -> str:
        return f"{self.law}{f' job {self.job}' if self.job else ''}: {self.text}"
