"""The operations on webhooks, which receive ends of all workspaces."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from laneway.domain.page import Page
from laneway.domain.webhook import (
    SavedWebhook,
    TestDelivery,
    Webhook,
    WebhookName,
    WebhookSettings,
)
from laneway.operations.operation import Operation, operation

_WEBHOOKS: Final = "/admin/webhooks"
_WEBHOOK: Final = f"{_WEBHOOKS}/{{name}}"
# Also to read: the path of a URL may be a secret.
_manages: Final = partial(operation, permission="workers:manage", scope="everywhere")


@_manages("GET", _WEBHOOKS, page=200, command="webhooks ls")
def list_webhooks() -> Page[Webhook]:
    """List webhooks by name, without their secrets."""


@_manages(
    "POST",
    _WEBHOOKS,
    status=201,
    takes_key=False,
    location=_WEBHOOK,
    body="NewWebhook",
    defaults=Webhook,
    command="webhooks set",
)
def create_webhook(name: WebhookName, settings: WebhookSettings) -> SavedWebhook:
    """Create a webhook; it is sent the ends of jobs from now on.

    Without a `secret` one is generated, and only this response has it. So no response is stored for
    an Idempotency-Key.
    """


@_manages("GET", _WEBHOOK, command="webhooks show")
def get_webhook(name: WebhookName) -> Webhook:
    """Show one webhook, without its secret."""


@_manages("PATCH", _WEBHOOK, body="WebhookChange", command="webhooks set")
def change_webhook(name: WebhookName, change: WebhookSettings) -> Webhook:
    """Change the given settings, also for deliveries that wait.

    The secret before a change signs too for 24 hours.
    """


@_manages("DELETE", _WEBHOOK, status=204, command="webhooks delete")
def delete_webhook(name: WebhookName) -> None:
    """Delete a webhook; deliveries that wait are cancelled."""


@_manages("POST", f"{_WEBHOOK}/rotate", takes_key=False, command="webhooks rotate")
def rotate_webhook_secret(name: WebhookName) -> SavedWebhook:
    """Replace the secret by a new one, which only this response has; both sign for 24 hours."""


@_manages("POST", f"{_WEBHOOK}/test", status=202, command="webhooks test")
def test_webhook(name: WebhookName) -> TestDelivery:
    """Send a `webhook.test` event with a sample job, once; also if the webhook is disabled."""


WEBHOOKS: Final[tuple[Operation[Any, Any], ...]] = (
    list_webhooks, create_webhook, get_webhook, change_webhook, delete_webhook,
    rotate_webhook_secret, test_webhook,
)  # fmt: skip
