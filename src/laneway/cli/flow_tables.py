"""Tables of flows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.text import Text

from laneway.cli.tables import STYLES, ago, columns, cut

if TYPE_CHECKING:
    from rich.table import Table

    from laneway.domain.flow import Flow


def flows(items: Iterable[Flow]) -> Table:
    """Render a list of flows."""
    right = ("JOBS", "DONE", "FAILED", "CANCELLED", "AGE")
    table = columns("ID", "NAME", "STATUS", *right, "TAGS", right=right, folding=("NAME", "TAGS"))
    for flow in items:
        counts = flow.counts
        table.add_row(
            str(flow.id),
            cut(flow.name),
            Text(flow.status.value, STYLES.get(flow.status.value, "")),
            str(counts.jobs),
            str(counts.completed),
            str(counts.failed),
            str(counts.cancelled),
            ago(flow.created_at),
            cut(", ".join(flow.tags) or "-"),
        )
    return table
