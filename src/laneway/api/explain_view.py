"""The explanation of a job as one reader sees it: jobs in reach are named, others counted."""

from __future__ import annotations

import re
from typing import Any, Final
from uuid import UUID

from laneway.api.auth import Caller
from laneway.api.job_access import covers
from laneway.domain.explanation import Explanation
from laneway.store import jobs as store

_ID: Final = r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"
_ONE: Final = re.compile(_ID)
_SEVERAL: Final = re.compile(rf"(?:\bjob )?{_ID}(?:, {_ID})*(?: and (\d+) more)?")


async def as_seen(who: Caller, explanation: Explanation) -> dict[str, Any]:
    """The explanation without the names of jobs that the reader may not see."""
    told = explanation.to_dict()
    reach = who.access.reach("jobs:read")
    if who.access.allows_everywhere("jobs:read"):
        return told
    messages = [reason.message for reason in explanation.reasons]
    found = {UUID(each) for message in messages for each in _ONE.findall(message)}
    named = {str(explanation.id)}
    for job_id in found - {explanation.id}:
        job = await who.database.run(store.get(job_id))
        if job is not None and covers(reach, job):
            named.add(str(job_id))
    told["reasons"] = [
        {"code": reason.code, "message": _named(reason.message, named)}
        for reason in explanation.reasons
    ]
    return told


def _named(message: str, named: set[str]) -> str:
    """The message with every list of jobs cut down to those named; the others are counted."""

    def kept(found: re.Match[str]) -> str:
        ids = _ONE.findall(found[0])
        shown = [each for each in ids if each in named]
        if len(shown) == len(ids):
            return found[0]
        others = len(ids) - len(shown) + int(found[1] or 0)
        counted = "another job" if others == 1 else f"{others} other jobs"
        return f"{', '.join(shown)} and {counted}" if shown else counted

    return _SEVERAL.sub(kept, message)
