"""Webhooks, as statements. Only `target` reads secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

from laneway.domain.webhook import (
    OLD_SECRET_S,
    WEBHOOK_SUBMITTER,
    WEBHOOK_TYPE,
    Webhook,
    WebhookSettings,
)
from laneway.store.statement import Row, Statement, scalar

_COLUMNS: Final = tuple(name for name in WebhookSettings.__annotations__ if name != "secret")
_LISTS: Final = ("events", "job_types", "workspaces", "lanes", "tags")


def _webhook(row: Row) -> Webhook:
    values: list[Any] = [tuple(each) if isinstance(each, list) else each for each in row]
    return Webhook(*values)


def read(name: str | None = None) -> Statement[list[Webhook]]:
    """All webhooks by name, or one, without secrets."""
    return Statement(
        "webhooks/read_webhooks", lambda rows: [_webhook(row) for row in rows], {"name": name}
    )


def _params(values: Mapping[str, Any]) -> dict[str, Any]:
    params = {column: values.get(column) for column in (*_COLUMNS, "secret")}
    return params | {name: list(params[name] or ()) for name in _LISTS}


def create(webhook: Webhook, secret: str, by: str) -> Statement[bool | None]:
    """Creates a webhook unless the name is taken."""
    values = {column: getattr(webhook, column) for column in _COLUMNS}
    params = _params({**values, "secret": secret})
    return Statement("webhooks/create_webhook", scalar, {"name": webhook.name, "by": by, **params})


def change(name: str, changed: Mapping[str, object], by: str) -> Statement[bool | None]:
    """Changes the columns in `changed` (already validated); None for an unknown webhook."""
    return Statement(
        "webhooks/change_webhook",
        scalar,
        {
            "name": name,
            "by": by,
            "columns": list(changed),
            "old_secret_s": OLD_SECRET_S,
            **_params(changed),
        },
    )


def delete(name: str) -> Statement[bool | None]:
    return Statement("webhooks/delete_webhook", scalar, {"name": name})


def submit_test(name: str, job: Mapping[str, object]) -> Statement[UUID | None]:
    """Submits a delivery of a sample job; None for an unknown webhook."""
    return Statement(
        "webhooks/submit_test",
        scalar,
        {
            "name": name,
            "job": json.dumps(job),
            "job_type": WEBHOOK_TYPE,
            "submitter": WEBHOOK_SUBMITTER,
        },
    )


class Target(NamedTuple):
    """The place of a delivery; `secrets` sign it, the newest first.

    A webhook that is deleted and created again has another `id`.
    """

    url: str
    enabled: bool
    timeout_s: int
    secrets: list[str]
    id: UUID

    def __repr__(self) -> str:
        return f"Target(enabled={self.enabled})"


def target(name: str) -> Statement[Target | None]:
    """The target of a webhook, with its secrets; None if it was deleted."""
    return Statement(
        "webhooks/read_target", lambda rows: Target(*rows[0]) if rows else None, {"name": name}
    )
