"""`laneway webhooks …`"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from laneway.cli import connection
from laneway.cli.groups import group
from laneway.cli.inputs import Json
from laneway.cli.name_notes import note_unpublished_types
from laneway.cli.output import line, moment, note, show, show_json, show_json_lines
from laneway.cli.setting_options import takes_settings
from laneway.domain.webhook import SavedWebhook, Webhook, WebhookSettings
from laneway.errors import NotFound
from laneway.operations import webhooks as operations

if TYPE_CHECKING:
    from laneway.cli.connection import Backend

app = group("Show and change webhooks: URLs that are sent the ends of jobs.")

Name = Annotated[str, typer.Argument(metavar="WEBHOOK", help="The webhook's name.")]


@app.command()
def ls(json: Json = False) -> None:
    """List webhooks."""
    found = connection.items(operations.list_webhooks())
    if json:
        show_json_lines(found)
        return
    from laneway.cli import webhook_tables

    show(webhook_tables.webhooks(found))


@app.command("show")
def show_(webhook: Name, json: Json = False) -> None:
    """Show one webhook; its secret is never shown."""
    found = connection.run(lambda backend: _get(backend, webhook))
    if json:
        show_json(found)
        return
    from laneway.cli import webhook_tables

    show(webhook_tables.webhook(found))


async def _get(backend: Backend, name: str) -> Webhook:
    found = await backend.call(operations.get_webhook(name))
    await note_unpublished_types(backend, found.job_types)
    return found


@app.command("set")
@takes_settings(WebhookSettings, without=("secret", "enabled"))
def set_(
    webhook: Name,
    settings: WebhookSettings,
    secret_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A file with the secret to use, whsec_…; - reads stdin."),
    ] = None,
    json: Json = False,
) -> None:
    """Create a webhook (needs --url), or change what is given; an empty list removes a filter."""
    if secret_file is not None:
        settings["secret"] = _read_secret(secret_file)
    if not settings:
        raise typer.BadParameter("give at least one setting to change")
    done, saved = connection.run(lambda backend: _put(backend, webhook, settings))
    _show(saved, done, json=json)


async def _put(backend: Backend, name: str, settings: WebhookSettings) -> tuple[str, SavedWebhook]:
    done, saved = await _create_or_change(backend, name, settings)
    if "job_types" in settings:
        await note_unpublished_types(backend, saved.webhook.job_types)
    return done, saved


async def _create_or_change(
    backend: Backend, name: str, settings: WebhookSettings
) -> tuple[str, SavedWebhook]:
    try:
        changed = await backend.call(operations.change_webhook(name, settings))
    except NotFound:
        if "url" not in settings:
            raise
        return "created", await backend.call(operations.create_webhook(name, settings))
    return f"set {', '.join(sorted(settings))}", SavedWebhook(changed)


def _read_secret(file: str) -> str:
    from laneway.errors import InvalidInput

    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidInput("--secret-file", f"cannot read {file}: {why}") from None
    return text.strip()


def _show(saved: SavedWebhook, done: str, *, json: bool) -> None:
    if json:
        show_json(saved)
        return
    until = saved.webhook.previous_secret_until
    old = f"; the old secret signs too until {moment(until)}" if until else ""
    shown = "; give its secret to the receiver, it is not shown again:" if saved.secret else ""
    note(f"webhook {saved.webhook.name}: {done}{old}{shown}")
    if saved.secret:
        line(saved.secret)


@app.command()
def enable(webhook: Name, json: Json = False) -> None:
    """Send ends from now on."""
    _switch(webhook, enabled=True, json=json)


@app.command()
def disable(webhook: Name, json: Json = False) -> None:
    """Send nothing until it is enabled; deliveries that wait are cancelled."""
    _switch(webhook, enabled=False, json=json)


def _switch(name: str, *, enabled: bool, json: bool) -> None:
    changed: Webhook = connection.call(operations.change_webhook(name, {"enabled": enabled}))
    _show(SavedWebhook(changed), "enabled" if enabled else "disabled", json=json)


@app.command()
def rotate(webhook: Name, json: Json = False) -> None:
    """Replace the secret and print the new one; both sign for 24 hours."""
    _show(connection.call(operations.rotate_webhook_secret(webhook)), "secret rotated", json=json)


@app.command("test")
def send_test(webhook: Name, json: Json = False) -> None:
    """Send a test event, and print the id of its job; `laneway jobs wait ID` shows the outcome."""
    sent = connection.call(operations.test_webhook(webhook))
    if json:
        show_json(sent)
    else:
        line(str(sent.job_id))


@app.command()
def delete(webhook: Name, json: Json = False) -> None:
    """Delete a webhook; deliveries that wait are cancelled."""
    connection.call(operations.delete_webhook(webhook))
    if json:
        show_json({"name": webhook, "deleted": True})
    else:
        note(f"webhook {webhook}: deleted")
