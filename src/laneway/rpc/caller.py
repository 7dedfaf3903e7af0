"""Who opened a stream, and what it may be sent."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Caller:
    """A principal and the lanes and job types that its token may claim in; None: all."""

    principal_id: UUID
    name: str
    lanes: frozenset[str] | None = None
    job_types: frozenset[str] | None = None
