"""Who opened a stream, and what it may be sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class Caller:
    """A principal and the lanes and job types that its token may claim in; None: all."""

    principal_id: UUID
    name: str
    lanes: frozenset[str] | None = None
    job_types: frozenset[str] | None = None

    @property
    def reach(self) -> str:
        """What its token covers, for people."""
        lanes = "every lane" if self.lanes is None else _listed("lane", self.lanes)
        types = "" if self.job_types is None else _listed("job type", self.job_types) + " in "
        return types + lanes


def _listed(kind: str, names: frozenset[str]) -> str:
    shown = ", ".join(sorted(names)[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return f"{kind} {shown}" if len(names) == 1 else f"{kind}s {shown or '(none)'}"
