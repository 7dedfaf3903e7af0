"""Exit codes; turns every error into a message and a code."""

from __future__ import annotations

import os
import sys
import traceback
from enum import IntEnum

import typer

from laneway import errors
from laneway.cli.output import note, visible


class ExitCode(IntEnum):
    """The exit codes of the program."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    REFUSED = 4
    UNREACHABLE = 5
    INTERRUPTED = 130
    # As if SIGPIPE had ended the program.
    CLOSED_PIPE = 141


# The first match wins: list a subclass before its parent.
_CODES: tuple[tuple[type[errors.LanewayError], ExitCode], ...] = (
    (errors.JobFailed, ExitCode.FAILED),
    (errors.InvalidInput, ExitCode.USAGE),
    (errors.ConfigError, ExitCode.USAGE),
    (errors.NotFound, ExitCode.NOT_FOUND),
    (errors.Refused, ExitCode.REFUSED),
    (errors.NeedsDatabase, ExitCode.REFUSED),
    (errors.Unauthenticated, ExitCode.REFUSED),
    (errors.Forbidden, ExitCode.REFUSED),
    (errors.RateLimited, ExitCode.REFUSED),
    (errors.MissingRight, ExitCode.REFUSED),
    (errors.DatabaseUnavailable, ExitCode.UNREACHABLE),
    (errors.ServerUnreachable, ExitCode.UNREACHABLE),
)


_as_json = False


def log_as_json(as_json: bool) -> None:
    """Choose whether the error that ends the program is a JSON log line."""
    global _as_json
    _as_json = as_json


def exit_code(error: BaseException) -> ExitCode:
    """Return the exit code of an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.FAILED)


def report(error: Exception) -> ExitCode:
    """Print an error on one line and return its exit code."""
    if os.environ.get("LANEWAY_DEBUG"):
        sys.stderr.write(_redacted("".join(traceback.format_exception(error))))
    message = str(error) or type(error).__name__
    if not isinstance(error, errors.LanewayError):
        message = _redacted(message)
        message = (
            f"unexpected {type(error).__name__}: {message} (set LANEWAY_DEBUG=1 for a traceback)"
        )
    _end_with(_without_password(message), code := exit_code(error))
    return code


def fail(message: str, code: ExitCode) -> typer.Exit:
    """Print the message and return the exception to raise."""
    _end_with(message, code)
    return typer.Exit(code)


def _end_with(message: str, code: ExitCode) -> None:
    if not _as_json:
        note(f"laneway: {visible(message)}")
        return
    import logging

    from laneway.engine.process.logs import JsonLines

    fields = {"name": "laneway", "levelno": logging.CRITICAL, "levelname": "CRITICAL"}
    record = logging.makeLogRecord({**fields, "msg": message, "exit_code": int(code)})
    note(JsonLines().format(record))


def _redacted(text: str) -> str:
    from laneway.domain.redaction import redact

    return redact(text)


def _without_password(text: str) -> str:
    from laneway.domain.redaction import redact_urls

    # The URL may come from the environment, a file or the application's code.
    return redact_urls(text)
