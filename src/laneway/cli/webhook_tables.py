"""Tables of webhooks."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from laneway.cli.output import moment, visible
from laneway.cli.tables import columns, fields
from laneway.domain.webhook import EVENTS, FILTERS

if TYPE_CHECKING:
    from laneway.domain.webhook import Webhook


def webhooks(items: Iterable[Webhook]) -> Table:
    """Render a list of webhooks."""
    table = columns("WEBHOOK", "URL", "EVENTS", "ONLY", "STATE", folding=("URL", "ONLY"))
    for each in items:
        state = Text("enabled", "green") if each.enabled else Text("disabled", "yellow")
        table.add_row(each.name, visible(each.url), _events(each), visible(_only(each)), state)
    return table


def webhook(shown: Webhook) -> Table:
    """Render one webhook field by field."""
    grid = fields()
    for name in shown.__slots__:
        value = getattr(shown, name)
        if isinstance(value, datetime):
            value = moment(value)
        if isinstance(value, tuple):
            value = ", ".join(value)
        if value not in (None, ""):
            grid.add_row(name, visible(value))
    return grid


def _events(shown: Webhook) -> str:
    if shown.events == EVENTS:
        return "all"
    return ", ".join(event.removeprefix("job.") for event in shown.events)


def _only(shown: Webhook) -> str:
    found = {name: getattr(shown, name) for name in FILTERS}
    return "; ".join(f"{name} {', '.join(each)}" for name, each in found.items() if each) or "-"
