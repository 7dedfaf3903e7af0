"""Jobs of several concurrent requests, submitted by one statement."""

from __future__ import annotations

import json
from collections.abc import Sequence

from laneway.domain.actor import Actor
from laneway.domain.job import Job, NewJob
from laneway.store.jobs import json_settings, read_job
from laneway.store.quotas import Quota
from laneway.store.statement import Statement

Request = tuple[NewJob, Actor, Quota | None]


def submit(requests: Sequence[Request]) -> Statement[list[Job]]:
    """Stores jobs without unique_key and an audit entry for each; returns the jobs.

    Leaves out those whose type has become unique: submit them separately.
    """
    text = ",".join(_text(*request) for request in requests)
    return Statement(
        "jobs/submit_requests",
        lambda rows: [read_job(row, as_text=True) for row in rows],
        {"requests": f"[{text}]"},
    )


def _text(job: NewJob, actor: Actor, quota: Quota | None) -> str:
    fields: dict[str, object] = {
        "id": str(job.id),
        **json_settings(job),
        "actor": str(actor),
        "principal": actor.principal_id and str(actor.principal_id),
        "door": actor.door,
        "request": actor.request_id,
        "address": actor.address,
        # The submit itself may turn off what its type has published.
        "defers_unique": job.unique_for is None,
    }
    if quota is not None:
        fields |= {"bytes": len(job.payload.encode()), **quota.params()}
    text = json.dumps(fields)
    # The payload is already JSON text: checked, and perhaps large.
    return f'{text[:-1]},"payload":{job.payload}}}'
