"""`laneway bench`"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Annotated, Final

import typer

from laneway.cli import connection
from laneway.cli.exits import ExitCode
from laneway.cli.inputs import Json
from laneway.cli.output import line, note, show, show_json

if TYPE_CHECKING:
    from laneway.benchmark.report import BenchmarkReport

INTERRUPTS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def bench(
    seconds: Annotated[
        float, typer.Option(min=1, max=600, metavar="N", help="Measure for about this long.")
    ] = 60,
    json: Json = False,
) -> None:
    """Measure Laneway in your database for a minute, and say what limits the rate."""
    import asyncio

    try:
        report = asyncio.run(_measure(seconds))
    except asyncio.CancelledError:
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    if json:
        show_json(report.to_dict())
        return
    show(report.table())
    line("")
    for sentence in (report.limit, *report.notes):
        line(sentence)


async def _measure(seconds: float) -> BenchmarkReport:
    import asyncio

    from laneway.benchmark.run import run

    loop, measuring = asyncio.get_running_loop(), asyncio.current_task()
    assert measuring is not None  # noqa: S101 - asyncio.run made it

    def interrupt() -> None:
        # A second signal ends the program at once; the next run then removes the jobs.
        for number in INTERRUPTS:
            loop.remove_signal_handler(number)
        note("interrupted: removing the jobs of the benchmark …")
        measuring.cancel()

    for number in INTERRUPTS:
        loop.add_signal_handler(number, interrupt)
    async with connection.opened() as db:
        return await run(db, seconds, note)
