"""Data on stdout, messages on stderr. Text from jobs is escaped for terminals."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from laneway.domain import codec
from laneway.domain.text import visible as visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

# Wide enough that nothing wraps in a pipe.
_UNFOLDED = 1000
# Control characters, and those that change the direction of text.
_CONTROL = re.compile(r"[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

_MOMENT = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[+-]\d\d:\d\d|Z)")
_SECONDS = re.compile(r"(?<![\w.-])(\d+(?:\.\d+)?) s\b")

_no_color = False


def use_color(allowed: bool) -> None:
    """Allow or forbid colour; a terminal and NO_COLOR decide the rest."""
    global _no_color
    _no_color = not allowed


def may_color() -> bool:
    """Whether neither --no-color nor NO_COLOR forbids colour."""
    return not (_no_color or os.environ.get("NO_COLOR"))


def console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(
        file=stream,
        no_color=_no_color or None,
        color_system="auto" if stream.isatty() and not _no_color else None,
        width=None if stream.isatty() else _UNFOLDED,
        highlight=False,
        markup=False,
        emoji=False,
    )


def is_terminal() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def is_interactive() -> bool:
    """Whether the program can ask a question."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def note(message: str) -> None:
    """Print a message on stderr."""
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()


def line(text: str) -> None:
    """Print a line of data on stdout."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def show(rendered: RenderableType) -> None:
    """Print a table on stdout."""
    screen = console()
    if screen.is_terminal:
        screen.print(rendered)
        return
    with screen.capture() as captured:
        screen.print(rendered)
    for text in captured.get().splitlines():
        line(text.rstrip())


def show_json(value: object) -> None:
    """Print a JSON value, or a value of the domain, on one line."""
    line(to_json(codec.to_json(value)))


def show_json_lines(values: Iterable[object]) -> None:
    """Print JSON Lines."""
    for value in values:
        show_json(value)


def to_json(value: object) -> str:
    """Encode as JSON, escaping control characters and line separators."""
    text = json.dumps(value, ensure_ascii=False, default=str, separators=(", ", ": "))
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def moment(at: datetime | None) -> str:
    """Format a time in the local zone, with the zone: 2030-01-31 09:00:00 CET."""
    return "-" if at is None else at.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")


def seconds(value: float | None) -> str:
    """Format a duration: 450ms, 12s, 3m05s, 2h10m, 4d."""
    if value is None:
        return "-"
    if value < 1:
        return f"{max(0.0, value) * 1000:.0f}ms"
    whole = int(value)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 2 * 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d"


def jobs_word(count: int) -> str:
    """The noun after the number of jobs."""
    return "job" if count == 1 else "jobs"


def for_people(reason: str) -> str:
    """The text of a reason with its times and durations as in tables; JSON has the original."""
    text = _MOMENT.sub(lambda found: moment(datetime.fromisoformat(found[0])), reason)
    return _SECONDS.sub(lambda found: seconds(float(found[1])), text)
