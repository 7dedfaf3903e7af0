"""Events that handlers wait for, as statements."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from laneway.domain.sent_event import RETENTION_S
from laneway.store.quotas import Quota
from laneway.store.statement import Statement, rows_of


class SentEvent(NamedTuple):
    """A stored event, the number of jobs that go on because of it, and their types."""

    id: int
    delivered: int
    job_types: list[str] | None


class NewEvent(NamedTuple):
    """An event to be sent; its payload is JSON text."""

    name: str
    key: str
    payload: str
    workspace: str
    sent_by: str | None
    retention_s: float

    def text(self) -> str:
        """The event as JSON."""
        fields = self._asdict()
        payload = fields.pop("payload")
        # Already JSON text, and perhaps large.
        return f'{json.dumps(fields)[:-1]},"payload":{payload}}}'


def send_all(events: Sequence[NewEvent]) -> Statement[list[SentEvent]]:
    """Stores events in one transaction and delivers them, as `send`."""
    text = ",".join([event.text() for event in events])
    return Statement("sent_events/send_events", rows_of(SentEvent), {"events": f"[{text}]"})


def send_counted(
    quota: Quota,
    name: str,
    key: str,
    payload: str,
    *,
    workspace: str,
    sent_by: str,
    retention_s: float,
) -> Statement[SentEvent]:
    """Stores and delivers an event that counts against a quota of events."""
    bounds = quota.params()
    return Statement(
        "sent_events/send_counted",
        lambda rows: SentEvent(*rows[0]),
        {
            "account": quota.principal_id,
            "max_queued": bounds["max_queued"],
            "max_bytes": bounds["max_bytes"],
            "name": name,
            "key": key,
            "payload": payload,
            "workspace": workspace,
            "sent_by": sent_by,
            "retention": retention_s,
        },
    )


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
