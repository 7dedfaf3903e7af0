"""A note about `LANEWAY_…` variables that no setting and no option reads."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, Final

import typer

from laneway.cli.output import note, visible
from laneway.config.service_links import is_service_link

PREFIX: Final = "LANEWAY"
# Read outside of the settings and the options, by Laneway itself or by its tests.
_OTHERS: Final = re.compile(
    r"LANEWAY_(CONFIG|DEBUG|TOKEN_FILE|SUPERVISOR_FDS|TEST_.*|\w+_COMPLETE)"
    r"|LANEWAY_(DATABASE_URL|LISTEN_DSN|METRICS_TOKEN)_FILE"
)


_root: typer.Context | None = None


def use_root(ctx: typer.Context) -> None:
    """Set the context of this run, whose commands have variables."""
    global _root
    _root = ctx
    # Before the options of the command read their variables.
    for name, value in list(os.environ.items()):
        if name.startswith(f"{PREFIX}_") and is_service_link(name, value):
            del os.environ[name]


def note_unknown() -> None:
    """Print a note about each variable that is ignored, once per run, with the nearest name.

    Called by commands that use settings or a server: help and versions need not read all options.
    """
    global _root
    ctx, _root = _root, None
    if ctx is None:
        return
    given = {
        name
        for name, value in os.environ.items()
        if name.upper().startswith(f"{PREFIX}_") and value
    }
    if not given:
        return
    from laneway.config.settings import Settings

    known = {f"{PREFIX}_{name.upper()}" for name in Settings.model_fields}
    unknown = sorted(
        name for name in given if name.upper() not in known and not _OTHERS.fullmatch(name.upper())
    )
    if not unknown:
        return
    from laneway.domain.suggestion import suggest

    # Reading all commands takes a while.
    known |= set(_of_options(ctx.command, ctx, PREFIX))
    words = sorted(name.removeprefix(f"{PREFIX}_") for name in known)
    for name in unknown:
        if name not in known:
            similar = suggest(name.upper().removeprefix(f"{PREFIX}_"), words)
            similar = similar.replace("mean ", f"mean {PREFIX}_")
            note(f"{visible(name)} is ignored: it is not a variable of Laneway{similar}")


def _of_options(command: Any, ctx: typer.Context, path: str) -> Iterator[str]:
    """The variables of the options of a command and of all below it."""
    for param in command.params:
        named = param.envvar
        if named:
            yield from [named] if isinstance(named, str) else named
        else:
            yield f"{path}_{param.name}".upper()
    for name in command.list_commands(ctx) if hasattr(command, "list_commands") else ():
        below = command.get_command(ctx, name)
        yield from _of_options(below, ctx, f"{path}_{name}".replace("-", "_"))
