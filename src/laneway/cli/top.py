"""`laneway top`"""

from __future__ import annotations

from typing import Annotated

import typer

from laneway.cli import connection, inputs, output
from laneway.cli.inputs import Json
from laneway.cli.output import show_json


def top(
    interval: Annotated[
        float,
        typer.Option(
            metavar="DURATION",
            parser=inputs.duration,
            show_default="1s",
            help="Time between two refreshes.",
        ),
    ] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Print one frame and exit.")] = False,
    json: Json = False,
) -> None:
    """Watch lanes, slots, jobs and workers live, and act on the selected job."""
    if json:
        show_json(connection.run(lambda backend: backend.overview()).to_dict())
        return
    from laneway.cli import top_loop

    if once or not output.is_terminal():
        connection.run(top_loop.show_once)
        return
    connection.run(lambda backend: top_loop.Top(backend, max(interval, 0.1)).run())
