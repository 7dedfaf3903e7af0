"""`laneway freeze` and `laneway thaw`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from laneway.cli import completion, connection, inputs
from laneway.cli.exits import ExitCode
from laneway.cli.inputs import Json
from laneway.cli.output import note, seconds, show, show_json
from laneway.domain.codec import to_json
from laneway.operations.workers import thaw_lanes

if TYPE_CHECKING:
    from laneway.domain.freeze import Freeze

Lanes = Annotated[
    list[str] | None,
    typer.Argument(metavar="LANE", help="Only these lanes.", autocompletion=completion.lanes),
]


def freeze(
    lanes: Lanes = None,
    deadline: Annotated[
        float,
        typer.Option(
            metavar="DURATION",
            parser=inputs.duration,
            show_default="10m",
            help="How long to wait for running jobs.",
        ),
    ] = 600.0,
    or_thaw: Annotated[
        bool, typer.Option("--or-thaw", help="Thaw if jobs still run at the deadline.")
    ] = False,
    json: Json = False,
) -> None:
    """Drain lanes, by default all, and wait until no job runs in them."""
    try:
        frozen = connection.run(
            lambda backend: backend.freeze(lanes or None, deadline=deadline, or_thaw=or_thaw)
        )
    except KeyboardInterrupt:
        note(
            "interrupted: "
            + ("thawed" if or_thaw else "drained lanes stay drained; `laneway thaw` restores them")
        )
        raise
    if json:
        show_json(frozen)
    else:
        _show(frozen)
    if not frozen.is_quiet:
        raise typer.Exit(ExitCode.FAILED)


def _show(frozen: Freeze) -> None:
    names = ", ".join(each.lane for each in frozen.lanes)
    if not names:
        note("no lane is enabled: nothing to freeze")
    elif frozen.is_quiet:
        note(f"frozen, no job runs: {names} (`laneway thaw` restores them)")
    else:
        from laneway.cli import tables

        if frozen.running:
            show(tables.still_running(frozen.lanes))
        jobs = f"{frozen.running} {'job' if frozen.running == 1 else 'jobs'} still running"
        note(f"laneway: {jobs} after {seconds(frozen.waited_s)}: {_state(frozen)}")


def _state(frozen: Freeze) -> str:
    if frozen.left_frozen:
        thawed = "the other lanes are thawed; " if frozen.is_thawed else ""
        left = ", ".join(frozen.left_frozen)
        return (
            f"{thawed}left frozen by another freeze: {left} (`laneway lanes ls` shows by whom,"
            " `laneway thaw` restores them)"
        )
    return "thawed" if frozen.is_thawed else "lanes stay drained; `laneway thaw` restores them"


def thaw(lanes: Lanes = None, json: Json = False) -> None:
    """Restore frozen lanes, by default all, to their state before the freeze."""
    thawed = connection.call(thaw_lanes(lanes or None))
    if json:
        show_json({"lanes": to_json(thawed)})
        return
    for each in thawed:
        resumed = (
            " (it was resumed during the freeze)" if each.enabled and not each.was_enabled else ""
        )
        note(f"lane {each.lane}: {'enabled' if each.enabled else 'drained'}{resumed}")
    if not thawed:
        note("nothing is frozen")
