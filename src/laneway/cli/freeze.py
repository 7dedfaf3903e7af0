"""`laneway freeze` and `laneway thaw`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from laneway.cli import inputs, session
from laneway.cli.exits import ExitCode
from laneway.cli.inputs import Json
from laneway.cli.output import note, seconds, show, show_json

if TYPE_CHECKING:
    from laneway.domain.freeze import Freeze

Lanes = Annotated[list[str] | None, typer.Argument(metavar="LANE", help="These lanes only.")]


def freeze(
    lanes: Lanes = None,
    deadline: Annotated[
        float,
        typer.Option(
            metavar="DURATION", parser=inputs.duration, help="How long to wait for running jobs."
        ),
    ] = 600.0,
    or_thaw: Annotated[
        bool, typer.Option("--or-thaw", help="Thaw again if jobs still run at the deadline.")
    ] = False,
    json: Json = False,
) -> None:
    """Drain lanes, by default all, and wait until no job runs in them."""
    try:
        seen = session.run(
            lambda backend: backend.freeze(lanes or None, deadline=deadline, or_thaw=or_thaw)
        )
    except KeyboardInterrupt:
        note(
            "interrupted: "
            + ("thawed" if or_thaw else "what was drained stays so, see `laneway thaw`")
        )
        raise
    if json:
        show_json(seen.to_dict())
    else:
        _tell(seen)
    if not seen.is_quiet:
        raise typer.Exit(ExitCode.FAILED)


def _tell(seen: Freeze) -> None:
    names = ", ".join(each.lane for each in seen.lanes)
    if not names:
        note("no lane is enabled: there is nothing to freeze")
    elif seen.is_quiet:
        note(f"frozen and quiet: {names} (`laneway thaw` restores them)")
    else:
        from laneway.cli import tables

        if seen.running:
            show(tables.still_running(seen.lanes))
        what = "thawed again" if seen.is_thawed else "lanes stay drained, `laneway thaw` restores"
        note(f"laneway: {seen.running} still running after {seconds(seen.waited_s)}: {what}")


def thaw(lanes: Lanes = None, json: Json = False) -> None:
    """Make frozen lanes, by default all, again what they were before."""
    thawed = session.run(lambda backend: backend.thaw(lanes or None))
    if json:
        show_json({"lanes": [each._asdict() for each in thawed]})
        return
    for each in thawed:
        resumed = " (it was resumed meanwhile)" if each.enabled and not each.was_enabled else ""
        note(f"lane {each.lane}: {'enabled' if each.enabled else 'drained'}{resumed}")
    if not thawed:
        note("nothing is frozen")
