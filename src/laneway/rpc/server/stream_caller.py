"""The principal of a stream, and the jobs that it may get."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from laneway.domain.bounds import USUAL, Bounds, widest
from laneway.domain.permissions import Term

_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class StreamCaller:
    """A principal and the lanes and job types that its token may claim in; None: all.

    `declares`: the lanes in which it may change the published records of job types. `terms`: what
    its grants cover, with the bounds on sub-jobs that its workers submit.
    """

    principal_id: UUID
    name: str
    lanes: frozenset[str] | None = None
    job_types: frozenset[str] | None = None
    declares: frozenset[str] | None = frozenset()
    # The time until its token expires, in whole days or hours; None: that is not soon.
    expires_in_ms: int | None = None
    terms: tuple[Term, ...] = ()

    def may_claim_in(self, lane: str) -> bool:
        return self.lanes is None or lane in self.lanes

    def bounds_in(self, lane: str) -> Bounds:
        """The widest bounds of the grants that let it claim in a lane."""
        covering = [one.bounds for one in self.terms if one.lanes is None or lane in one.lanes]
        return widest(covering) if covering else USUAL

    def may_declare_in(self, lane: str) -> bool:
        return self.declares is None or lane in self.declares

    def may_run(self, job_type: str) -> bool:
        return self.job_types is None or job_type in self.job_types

    @property
    def coverage(self) -> str:
        """The lanes and job types that its token covers, as text."""
        lanes = "every lane" if self.lanes is None else _listed("lane", self.lanes)
        types = "" if self.job_types is None else _listed("job type", self.job_types) + " in "
        return types + lanes


def _listed(kind: str, names: frozenset[str]) -> str:
    shown = ", ".join(sorted(names)[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return f"{kind} {shown}" if len(names) == 1 else f"{kind}s {shown or '(none)'}"
