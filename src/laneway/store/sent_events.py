"""Events that handlers wait for, as statements."""

from __future__ import annotations

from typing import NamedTuple

from laneway.domain.sent_event import RETENTION_S
from laneway.store.statement import Statement


class SentEvent(NamedTuple):
    """A stored event, the number of jobs that go on because of it, and their types."""

    id: int
    delivered: int
    job_types: list[str] | None


def send(
    name: str,
    key: str,
    payload: str,
    *,
    workspace: str,
    sent_by: str | None = None,
    wake: bool = False,
    retention_s: float = RETENTION_S,
) -> Statement[SentEvent]:
    """Stores an event, whose payload is JSON text, and delivers it to the jobs that wait for it.

    `wake`: workers look for those jobs as soon as the transaction commits.
    """
    return Statement(
        "sent_events/send_event",
        lambda rows: SentEvent(*rows[0]),
        {
            "name": name,
            "key": key,
            "payload": payload,
            "workspace": workspace,
            "sent_by": sent_by,
            "wake": wake,
            "retention": retention_s,
        },
    )
