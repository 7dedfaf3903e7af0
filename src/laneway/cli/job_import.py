"""`laneway jobs import`"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from laneway.cli import connection, inputs
from laneway.cli.inputs import Json
from laneway.cli.output import line, note, show_json, visible

if TYPE_CHECKING:
    from laneway.domain.job_import import ImportPlan
    from laneway.store.database import Database

# Refused rows that are printed.
MOST_REFUSED = 20


def import_jobs(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="TOML: the table, its columns, what to set.")
    ],
    batch: Annotated[
        int, typer.Option(min=1, max=1000, help="Rows that are moved in one transaction.")
    ] = 500,
    follow: Annotated[
        float | None,
        typer.Option(
            metavar="DURATION",
            parser=inputs.duration,
            help="Go on, and look for new rows this often.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Try the first batch, and change nothing.")
    ] = False,
    json: Json = False,
) -> None:
    """Move jobs from another table of this database into Laneway, while both systems run."""
    from laneway.errors import InvalidInput

    try:
        plan = _read(file)
    except (OSError, ValueError, InvalidInput) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise typer.BadParameter(f"{file}: {why}") from None
    if connection.is_remote():
        raise typer.BadParameter("`import` needs a database: remove --server (LANEWAY_SERVER)")
    moved, refused = connection.run_on_database(
        lambda database: _move(database, plan, batch, follow, dry_run=dry_run)
    )
    if json:
        show_json({"moved": moved, "refused": dict(refused), "dry_run": dry_run})
    else:
        line(f"{'would move' if dry_run else 'moved'} {moved:,} jobs from {visible(plan.table)}")
        for row, why in refused[:MOST_REFUSED]:
            note(f"row {visible(row)} stays: {visible(why)}")
        if len(refused) > MOST_REFUSED:
            note(f"and {len(refused) - MOST_REFUSED:,} more rows stay")
    if refused:
        raise typer.Exit(1)


def _read(file: Path) -> ImportPlan:
    import tomllib

    from laneway.domain.job_import import ImportPlan

    return ImportPlan.read(tomllib.loads(file.read_text("utf-8")))


async def _move(
    database: Database, plan: ImportPlan, batch: int, follow: float | None, *, dry_run: bool
) -> tuple[int, list[tuple[str, str]]]:
    import asyncio

    from laneway.app.job_import import JobImport

    importing = JobImport(database, plan, connection.principal())
    moved = 0
    try:
        while True:
            while jobs := await importing.move(batch, dry_run=dry_run):
                moved += len(jobs)
                if dry_run:
                    return moved, [*importing.refused.values()]
                note(f"{moved:,} moved")
            if follow is None or dry_run:
                return moved, [*importing.refused.values()]
            await asyncio.sleep(follow)
    except asyncio.CancelledError:
        # Ctrl-C ends `--follow`; what was moved is committed.
        if follow is None:
            raise
        return moved, [*importing.refused.values()]
