"""Explanations of a job for one caller: jobs in reach are named, other jobs only counted.

Database sessions are named only for callers that may see workers.
"""

from __future__ import annotations

import re
from typing import Any, Final
from uuid import UUID

from laneway.api.http.auth import Caller
from laneway.api.http.job_access import covers
from laneway.domain.codec import to_json
from laneway.domain.explanation import Explanation, Reason
from laneway.domain.states import TERMINAL
from laneway.store import jobs as store

_ID: Final = r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"
_ONE: Final = re.compile(_ID)
_LOCKED: Final = Reason(
    "locked", "a database session holds locks that claims need: claims wait for it"
)
_SEVERAL: Final = re.compile(rf"(?:\bjob )?{_ID}(?:, {_ID})*(?: and (\d+) more)?")


async def as_seen(who: Caller, explanation: Explanation) -> dict[str, Any]:
    """The explanation without the ids of jobs that the caller may not see."""
    shown = explanation.to_dict()
    # The reason of an ended job is its own text: ids in it are not those of blocking jobs.
    if explanation.status in TERMINAL:
        return shown
    reasons = explanation.reasons
    if who.access.reach("workers:view").lanes == frozenset():
        reasons = list(
            dict.fromkeys(_LOCKED if one.code == _LOCKED.code else one for one in reasons)
        )
    if not who.access.allows_everywhere("jobs:read"):
        reasons = await _in_reach(who, explanation.id, reasons)
    return {**shown, "reasons": to_json(reasons)}


async def _in_reach(who: Caller, own: UUID, reasons: list[Reason]) -> list[Reason]:
    reach = who.access.reach("jobs:read")
    messages = [reason.message for reason in reasons]
    found = {UUID(each) for message in messages for each in _ONE.findall(message)}
    named = {str(own)}
    for job_id in found - {own}:
        job = await who.database.run(store.get(job_id))
        if job is not None and covers(reach, job):
            named.add(str(job_id))
    return [Reason(one.code, _named(one.message, named)) for one in reasons]


def _named(message: str, named: set[str]) -> str:
    """Reduce every list of jobs in a message to the visible ones; count the others."""

    def kept(found: re.Match[str]) -> str:
        ids = _ONE.findall(found[0])
        shown = [each for each in ids if each in named]
        if len(shown) == len(ids):
            return found[0]
        others = len(ids) - len(shown) + int(found[1] or 0)
        counted = "another job" if others == 1 else f"{others} other jobs"
        return f"{', '.join(shown)} and {counted}" if shown else counted

    return _SEVERAL.sub(kept, message)
