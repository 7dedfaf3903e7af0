"""`laneway events …`"""

from __future__ import annotations

from typing import Annotated

import typer

from laneway.cli import connection, inputs
from laneway.cli.groups import group
from laneway.cli.inputs import Json
from laneway.cli.output import jobs_word, note, show_json, visible
from laneway.domain.sent_event import RETENTION_S
from laneway.operations import flows as operations

app = group("Send events to waiting jobs.")


# Without it, Typer would make the only command the group itself.
@app.callback()
def root() -> None:
    """Send events to waiting jobs."""


@app.command()
def send(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name that handlers wait for.")],
    payload: Annotated[
        str | None, typer.Argument(metavar="[JSON]", help="The payload; - reads stdin.")
    ] = None,
    key: Annotated[str, typer.Option(help="Which one of that name.")] = "",
    workspace: Annotated[str, typer.Option(help="The workspace.")] = "default",
    retention: Annotated[
        float,
        typer.Option(
            parser=inputs.duration,
            show_default="1d",
            metavar="DURATION",
            help="How long it is kept for handlers that begin to wait later.",
        ),
    ] = RETENTION_S,
    json: Json = False,
) -> None:
    """Send an event: jobs that wait for its name and key continue."""
    value = None
    if payload is not None:
        value = inputs.event_payload(payload, connection.settings().payload_limits)
    sent = connection.call(operations.send_event(name, key, value, workspace, retention))
    if json:
        show_json(sent)
    else:
        outcome = (
            f"sent to {sent.delivered} {jobs_word(sent.delivered)}"
            if sent.delivered
            else "no job waits for it; it is kept for one that asks"
        )
        note(f"event {visible(name)}: {outcome}")
