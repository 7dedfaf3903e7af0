"""Tables of schedules and their slots."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from laneway.cli.output import moment, to_json, visible
from laneway.cli.tables import columns, fields
from laneway.domain import codec

if TYPE_CHECKING:
    from laneway.domain.schedule import Schedule, Slot

_OUTCOMES = {"submitted": "green", "failed": "red", "missed": "yellow"}


def schedules(items: Iterable[Schedule]) -> Table:
    table = columns("SCHEDULE", "TYPE", "CRON", "WHEN", "NEXT", "LAST", "STATE", "CHECK", "NOTE")
    for each in items:
        fires = each.next_fires
        table.add_row(
            each.name,
            visible(each.job_type),
            visible(each.cron),
            visible(each.timezone if each.words == each.cron else each.words),
            moment(fires[0].at if fires else each.next_at),
            _outcome(each.last.outcome) if each.last else "-",
            Text("enabled", "green") if each.enabled else Text("disabled", "yellow"),
            visible(each.check_name or "-"),
            visible(each.error or (fires[0].note if fires else None) or ""),
        )
    return table


def schedule(shown: Schedule) -> Table:
    """Render one schedule field by field."""
    from laneway.domain import cron

    grid = fields()
    for name, value in codec.to_json(shown).items():
        own = getattr(shown, name, None)
        if isinstance(own, datetime):
            value = moment(own)
        # The table of slots has `recent`.
        if value not in (None, [], "") and name not in ("last", "recent", "as_of", *shown.computed):
            grid.add_row(name, visible(value if isinstance(value, str) else to_json(value)))
        if name == "timezone":
            is_long = shown.words == shown.cron
            grid.add_row("words", cron.describe(shown.cron) if is_long else visible(shown.words))
        if name == "next_at":
            for each in shown.next_fires:
                grid.add_row("fires", f"{moment(each.at)}  {visible(each.note or '')}".rstrip())
    return grid


def slots(items: Iterable[Slot]) -> Table:
    table = columns("SLOT", "OUTCOME", "JOB", "AT", "NOTE")
    for each in items:
        table.add_row(
            moment(each.slot),
            _outcome(f"{each.outcome} (run now)" if each.manual else each.outcome),
            str(each.job_id or "-"),
            moment(each.at),
            visible(each.note or ""),
        )
    return table


def _outcome(outcome: str) -> Text:
    return Text(outcome, _OUTCOMES.get(outcome.split()[0], ""))
