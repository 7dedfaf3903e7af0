"""Sends events to waiting jobs."""

from __future__ import annotations

from functools import partial

from laneway.control import notifications
from laneway.control.audit import audited
from laneway.domain import verb_rules
from laneway.domain.job import DEFAULT_WORKSPACE, NAME_BYTES
from laneway.domain.payload import JsonText, encode
from laneway.domain.sent_event import RETENTION_S, EventDelivery, check_event
from laneway.domain.text import check_text
from laneway.observability.safe_logger import SafeLogger
from laneway.store import sent_events as store
from laneway.store.database import Database
from laneway.store.quotas import Quota

log = SafeLogger("laneway.control")


async def send(
    db: Database,
    name: str,
    *,
    key: str = "",
    payload: object = None,
    workspace: str = DEFAULT_WORKSPACE,
    retention_s: float = RETENTION_S,
    by: str,
    quota: Quota | None = None,
) -> EventDelivery:
    """Send an event; jobs that wait for it continue. The audit keeps its name, not its payload.

    It counts against the quota until its retention is over.
    """
    verb_rules.check_actor(by)
    seconds = check_event(name, key, retention_s)
    check_text(workspace, "workspace", max_bytes=NAME_BYTES)
    limits = db.settings.payload_limits
    text = payload if isinstance(payload, JsonText) else encode(payload, limits=limits)
    async with audited(db, by, "event.sent", "event", name) as change:
        send = store.send if quota is None else partial(store.send_counted, quota)
        sent = await change.run(
            send(name, key, text, workspace=workspace, sent_by=by, retention_s=seconds)
        )
        change.workspace = workspace
        change.after = {"key": key, "delivered": sent.delivered}
    if sent.job_types:
        await notifications.wake(db, sent.job_types)
    log.info("event %s %s sent by %s to %s jobs", name, key, by, sent.delivered)
    return EventDelivery(sent.id, sent.delivered)
