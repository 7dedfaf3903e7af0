"""Verbs on webhooks. No result, log line or audit entry has a secret; the audit has no paths."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from laneway.control import notifications
from laneway.control.audit import AuditedChange, audited
from laneway.domain.codec import to_json
from laneway.domain.missing import missing
from laneway.domain.text import log_words
from laneway.domain.verb_rules import check_actor
from laneway.domain.webhook import (
    WEBHOOK_TYPE,
    SavedWebhook,
    TestDelivery,
    Webhook,
    check_webhook_name,
    new_secret,
    origin_of,
    validate_webhook_change,
)
from laneway.errors import InvalidInput, LanewayError, Refused
from laneway.observability.safe_logger import SafeLogger
from laneway.store import webhooks as store
from laneway.store.database import Database
from laneway.store.unpublished_types import find_unpublished

log = SafeLogger("laneway.control")

# The ended job of a test event.
_SAMPLE_JOB: Final[Mapping[str, object]] = {
    "id": "00000000-0000-0000-0000-000000000000",
    "job_type": "sample",
    "status": "completed",
    "workspace": "default",
    "lane": "default",
    "priority": 0,
    "attempt": 1,
    "retries": 0,
    "max_retries": 3,
    "tags": ["test"],
    "flow": None,
    "created_at": "2000-01-01T00:00:00+00:00",
    "created_by": "laneway",
    "started_at": "2000-01-01T00:00:01+00:00",
    "finished_at": "2000-01-01T00:00:02+00:00",
    "cancel_reason": None,
    "cancelled_by": None,
    "error": None,
    "payload": {"path": "sample.pdf"},
    "result": {"pages": 3},
    "omitted": [],
}


async def inspect(db: Database) -> list[Webhook]:
    """Every webhook, by name."""
    return await db.run(store.read())


async def get(db: Database, name: str) -> Webhook:
    """One webhook."""
    return await _read(db, check_webhook_name(name))


async def create(
    db: Database, name: str, settings: Mapping[str, object], *, by: str
) -> SavedWebhook:
    """Create a webhook; without a secret it gets a new one, which only this result has."""
    check_actor(by)
    given = validate_webhook_change({"name": name, **settings}, new=True)
    secret = given.pop("secret", None)
    generated = new_secret() if secret is None else None
    async with audited(db, by, "webhook.created", "webhook", name) as change:
        if not await change.run(store.create(Webhook(**given), secret or str(generated), by)):
            raise Refused(f"the webhook {name} already exists")
        made = await _read(change, name)
        change.after = _audited(made)
    log.info("webhook %s: created by %s", name, by)
    await _log_unpublished(db, made)
    return SavedWebhook(made, generated)


async def change(db: Database, name: str, settings: Mapping[str, object], *, by: str) -> Webhook:
    """Change the given settings; the secret before a change signs too for a while."""
    check_actor(by)
    check_webhook_name(name)
    checked = validate_webhook_change(settings)
    if not checked:
        raise InvalidInput("webhook", "give at least one setting to change")
    async with audited(db, by, "webhook.changed", "webhook", name) as audited_change:
        changed = await _change(audited_change, name, checked, by)
    log.info("webhook %s: %s, by %s", name, ", ".join(sorted(checked)), by)
    if "job_types" in checked:
        await _log_unpublished(db, changed)
    return changed


async def rotate(db: Database, name: str, *, by: str) -> SavedWebhook:
    """Replace the secret; only this result has the new one, and both sign for a while."""
    check_actor(by)
    check_webhook_name(name)
    secret = new_secret()
    async with audited(db, by, "webhook.secret_rotated", "webhook", name) as audited_change:
        changed = await _change(audited_change, name, {"secret": secret}, by)
    log.info("webhook %s: secret rotated by %s", name, by)
    return SavedWebhook(changed, secret)


async def delete(db: Database, name: str, *, by: str) -> None:
    """Delete a webhook; deliveries that wait are cancelled when they run."""
    check_actor(by)
    check_webhook_name(name)
    async with audited(db, by, "webhook.deleted", "webhook", name) as audited_change:
        audited_change.before = _audited(await _read(audited_change, name))
        if not await audited_change.run(store.delete(name)):
            raise missing("webhook", name)
    log.info("webhook %s: deleted by %s", name, by)


async def test(db: Database, name: str, *, by: str) -> TestDelivery:
    """Submit a delivery of a sample job, also to a disabled webhook."""
    check_actor(by)
    check_webhook_name(name)
    async with audited(db, by, "webhook.tested", "webhook", name) as audited_change:
        job_id = await audited_change.run(store.submit_test(name, _SAMPLE_JOB))
        if job_id is None:
            raise missing("webhook", name)
        audited_change.after = {"job_id": str(job_id)}
    log.info("webhook %s: %s, by %s", name, log_words({"test": str(job_id)}), by)
    await notifications.wake(db, [WEBHOOK_TYPE])
    return TestDelivery(job_id)


async def _log_unpublished(db: Database, webhook: Webhook) -> None:
    # The webhook is stored, and a new secret not yet shown: no error may end the call.
    with suppress(LanewayError):
        for job_type, near in (await find_unpublished(db, webhook.job_types)).items():
            text = log_words({"type": job_type})
            log.info("webhook %s: no worker has published %s%s", webhook.name, text, near)


async def _read(db: Database | AuditedChange, name: str) -> Webhook:
    found = await db.run(store.read(name))
    if not found:
        raise missing("webhook", name)
    return found[0]


async def _change(
    audited_change: AuditedChange, name: str, checked: Mapping[str, object], by: str
) -> Webhook:
    audited_change.before = _audited(await _read(audited_change, name))
    if not await audited_change.run(store.change(name, checked, by)):
        raise missing("webhook", name)
    changed = await _read(audited_change, name)
    # A new secret or another path of the URL shows only here.
    audited_change.after = {**_audited(changed), "changed": sorted(checked)}
    return changed


def _audited(webhook: Webhook) -> dict[str, object]:
    """A webhook as the audit keeps it: its readers may not read webhooks."""
    return {**to_json(webhook), "url": origin_of(webhook.url)}
