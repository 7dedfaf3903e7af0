"""Parsers of arguments; an invalid one is a usage error that names the rule."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from laneway.cli import completion

if TYPE_CHECKING:
    from laneway.domain.bounds import Usual
    from laneway.domain.job_id import IdPrefix
    from laneway.domain.payload import PayloadLimits

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)?", re.ASCII)
_LONGEST_S = 100 * 366 * 86400.0
# More digits than any valid number here, and few enough for int().
_MAX_DIGITS = 18
_SHOWN = 60
# The value of an option that removes a setting.
NONE = "none"


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def job_id(text: str) -> UUID | IdPrefix:
    """Parse a job id, or its first digits."""
    from laneway.domain.job_id import parse_id
    from laneway.errors import InvalidInput

    try:
        return parse_id(text)
    except InvalidInput as error:
        raise typer.BadParameter(f"{_quoted(text)} is not a job id: it {error.rule}") from None


def record_id(text: str) -> UUID | IdPrefix:
    """Parse the id of a grant or a token, or its first digits."""
    from laneway.domain.job_id import parse_id
    from laneway.errors import InvalidInput

    try:
        return parse_id(text)
    except InvalidInput as error:
        raise typer.BadParameter(f"{_quoted(text)} is not an id: it {error.rule}") from None


def full_id(text: str) -> UUID:
    """Parse a complete id."""
    try:
        return UUID(text)
    except ValueError:
        raise typer.BadParameter(f"{_quoted(text)} is not an id: write all of it") from None


def duration(text: str | float) -> float:
    """Parse `90`, `1.5s`, `500ms`, `5m`, `2h` or `1d` into seconds; defaults are numbers."""
    if not isinstance(text, str):
        return text
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise typer.BadParameter(
            f"{_quoted(text)} is not a duration: write 90, 500ms, 30s, 5m, 2h or 1d"
        )
    parsed = float(found[1]) * _UNITS[found[2] or "s"]
    if parsed > _LONGEST_S:
        raise typer.BadParameter(f"{_quoted(text)} is longer than 100 years")
    return parsed


def moment(text: str) -> datetime:
    """Parse an ISO 8601 time with a zone."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{_quoted(text)} is not a time: write ISO 8601, for example 2030-01-31T08:00:00Z"
        ) from None
    if at.utcoffset() is None:
        raise typer.BadParameter(f"{_quoted(text)} has no time zone: append Z or an offset")
    return at


def since(text: str) -> datetime | float:
    """Parse a time, or seconds ago, which the database's clock resolves later."""
    if _DURATION.fullmatch(text.strip()):
        return duration(text)
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{_quoted(text)} is neither a duration nor a time: write how long ago, such as 30m, 2h"
            " or 1d, or ISO 8601, such as 2030-01-31T08:00:00Z"
        ) from None
    return moment(text)


def names(text: str) -> list[str]:
    """Split `a,b` into a list; an empty text is an empty list."""
    return [name for part in text.split(",") if (name := part.strip())]


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS


def whole_or(word: str, is_signed: bool = False) -> Callable[[str], str]:
    """Make a parser of whole numbers, or a word."""
    number = "a whole number" if is_signed else "a whole number of at least 0"

    def parse(text: str) -> str:
        if text != word and not _is_whole(text.removeprefix("-") if is_signed else text):
            raise typer.BadParameter(f"{_quoted(text)}: write {number}, or `{word}`")
        return text

    return parse


def bound(text: str | None, name: str) -> int | Usual | None:
    """Parse a bound of a grant: a whole number, or `usual`."""
    if text is None or text == "usual":
        return text  # type: ignore[return-value]
    if len(text) <= _MAX_DIGITS and re.fullmatch(r"-?\d+", text, re.ASCII):
        return int(text)
    option = "--" + name.replace("_", "-")
    raise typer.BadParameter(
        f"{option}: {_quoted(text)} is not a bound: write a whole number,"
        " or `usual` to remove it, so that the usual bound of the role applies"
    )


def rate(text: str) -> tuple[int | None, float | None]:
    """Parse `60/1m` or `10/s` into a count and seconds; `none` gives None for both."""
    if text == NONE:
        return None, None
    from laneway.domain.limit import parse_rate
    from laneway.errors import InvalidInput

    try:
        return parse_rate(text)
    except InvalidInput:
        raise typer.BadParameter(
            f"{_quoted(text)} is not a rate: write 60/1m, 10/s or `none`"
        ) from None


def payload(
    text: str | None, file: str | None, arguments: list[str], limits: PayloadLimits
) -> object:
    """Read the payload from JSON text, a file or stdin (`-`), and add the `--arg` values."""
    from laneway.errors import InvalidInput

    if text is not None and file is not None:
        raise InvalidInput("payload", "give it as an argument or with --file, not both")
    if text == "-" or file == "-":
        value = parse_json(sys.stdin.read(), "stdin", limits)
    elif file is not None:
        value = parse_json(_read(file), file, limits)
    else:
        value = parse_json(text, "payload", limits) if text is not None else {}
    if not arguments:
        return value
    if not isinstance(value, dict):
        raise InvalidInput("--arg", "the payload must be a JSON object to add arguments")
    return {**value, **dict(_argument(each, limits) for each in arguments)}


def event_payload(text: str, limits: PayloadLimits) -> object:
    """Read the payload from JSON text or stdin (`-`); an error about a word names its JSON."""
    from laneway.errors import InvalidInput

    try:
        return payload(text, None, [], limits)
    except InvalidInput as error:
        is_word = error.field == "payload" and text.lstrip()[:1] not in ("{", "[", '"')
        if not (is_word and error.rule.startswith("is not JSON")) or len(text) > _SHOWN:
            raise
        raise InvalidInput(
            error.field, f"{error.rule}; for a string write {_shell_json(text)}"
        ) from None


@contextmanager
def explained_arguments(arguments: list[str]) -> Iterator[None]:
    """Let an error about an `--arg` that must be a string name how to write it."""
    from laneway.errors import InvalidInput

    try:
        yield
    except InvalidInput as error:
        values = {f"payload.{name}": value for name, _, value in map(_parts, arguments)}
        value = values.get(error.field, "")
        is_string = error.rule.startswith("must be of type") and '"string"' in error.rule
        if not value or not is_string or len(value) > _SHOWN:
            raise
        name = f"{error.field.removeprefix('payload.')}="
        raise InvalidInput(
            error.field, f"{error.rule}: write --arg {_shell_json(value, name)}"
        ) from None


def _parts(argument: str) -> tuple[str, str, str]:
    return argument.partition("=")


def _shell_json(text: str, before: str = "") -> str:
    """Text as JSON, quoted for a shell."""
    return shlex.quote(before + json.dumps(text, ensure_ascii=False))


def parse_json(text: str, source: str, limits: PayloadLimits) -> object:
    """Parse JSON; an error names line and column."""
    from laneway.domain.payload import decode
    from laneway.errors import InvalidInput

    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidInput(
            source, f"is not JSON at line {error.lineno} column {error.colno}: {error.msg}"
        ) from None
    except (ValueError, RecursionError):
        pass  # A number or a depth out of bounds: decode names the rule.
    return decode(text, limits, field=source)


def _read(file: str) -> str:
    from laneway.errors import InvalidInput

    try:
        return Path(file).read_text("utf-8")
    except OSError as error:
        raise InvalidInput("--file", f"cannot read {file}: {error.strerror}") from None
    except UnicodeError:
        raise InvalidInput("--file", f"{file} is not UTF-8 text") from None


def _argument(text: str, limits: PayloadLimits) -> tuple[str, object]:
    from laneway.domain.payload import decode
    from laneway.errors import InvalidInput

    name, equals, value = _parts(text)
    if not equals or not name:
        raise InvalidInput("--arg", f"write name=value, not {text!r}")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value
    except (ValueError, RecursionError):
        # A number or a depth out of bounds: decode names the rule.
        return name, decode(value, limits, field=f"payload.{name}")


# UUID | IdPrefix, which Typer does not know as a type.
JobId = Annotated[
    Any,
    typer.Argument(
        metavar="ID",
        parser=job_id,
        help="The id of a job, or its first digits.",
        autocompletion=completion.job_ids,
    ),
]
JobIds = Annotated[
    list[Any] | None,
    typer.Argument(
        metavar="ID…",
        parser=job_id,
        help="The ids of jobs, or their first digits.",
        autocompletion=completion.job_ids,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
