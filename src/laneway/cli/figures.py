"""`laneway jobs counts`, `laneway admin workers types`, `laneway admin failures`"""

from __future__ import annotations

from typing import Annotated

import typer

from laneway.cli import inputs, session
from laneway.cli.inputs import Json
from laneway.cli.output import note, show, show_json, show_json_lines
from laneway.cli.selection import Chosen, filtered

Lane = Annotated[str | None, typer.Option(metavar="LANE", help="Only of this lane.")]


@filtered
def counts(chosen: Chosen, json: Json = False) -> None:
    """Count the jobs in each state, up to some 10,000."""
    found = session.run(lambda desk: desk.count_jobs(chosen.wanted))
    if json:
        show_json_lines(each.to_dict() for each in found)
        return
    from laneway.cli import figure_tables

    show(figure_tables.counts(found))


def types(lane: Lane = None, json: Json = False) -> None:
    """Job types that workers have published; those that no live worker knows are told apart."""
    found = session.run(lambda desk: desk.job_types(lane))
    if json:
        show_json_lines(each.to_dict() for each in found)
    elif not found:
        note("no worker has published a job type")
    else:
        from laneway.cli import figure_tables

        show(figure_tables.types(found))


def failures(
    window: Annotated[
        float,
        typer.Option(metavar="DURATION", parser=inputs.duration, help="How far back, at most 1d."),
    ] = 3600.0,
    lane: Lane = None,
    job_type: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="Only of this job type.")
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", help="At most this many, 1 to 200.")] = 20,
    json: Json = False,
) -> None:
    """What jobs failed of lately, by job type and error, the most frequent first."""
    found = session.run(
        lambda desk: desk.failures(window_s=int(window), lane=lane, job_type=job_type, limit=limit)
    )
    if json:
        show_json({"is_capped": found.is_capped, "items": [each.to_dict() for each in found.items]})
        return
    if not found.items:
        note("no job has failed")
    else:
        from laneway.cli import figure_tables

        show(figure_tables.failures(found.items))
    if found.is_capped:
        note("more jobs have ended than were looked at: only the newest were")
