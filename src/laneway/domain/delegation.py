"""Nobody gives away more than he has."""

from __future__ import annotations

from laneway.domain.bounds import BOUNDED
from laneway.domain.permissions import CLAIM, PERMISSIONS, Access, Term


def excess(giver: Access, taker: Access) -> str | None:
    """A permission that the taker would have where the giver has not; None: there is none."""
    for permission in PERMISSIONS:
        own = giver.reach(permission).terms
        for term in taker.reach(permission).terms:
            if not any(_includes(each, term, permission) for each in own):
                return permission
    return CLAIM if taker.allows(CLAIM) and not _claims_within(giver, taker) else None


def _claims_within(giver: Access, taker: Access) -> bool:
    own, given = giver.token_job_types, taker.token_job_types
    return own is None or (given is not None and given <= own)


def _includes(wide: Term, narrow: Term, permission: str) -> bool:
    """Whether every job of the one is a job of the other, which allows as much."""
    return (
        (wide.owner is None or wide.owner == narrow.owner)
        and (wide.workspace is None or wide.workspace == narrow.workspace)
        and (wide.lanes is None or (narrow.lanes is not None and narrow.lanes <= wide.lanes))
        and (permission not in BOUNDED or wide.bounds.allows(narrow.bounds))
    )
