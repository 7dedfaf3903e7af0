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
    note(f"laneway: {visible(_without_password(message))}")
    return exit_code(error)


def fail(message: str, code: ExitCode) -> typer.Exit:
    """Print the message and return the exception to raise."""
    note(f"laneway: {visible(message)}")
    return typer.Exit(code)


def _redacted(text: str) -> str:
    from laneway.domain.redaction import redact

    return redact(text)


def _without_password(text: str) -> str:
    from laneway.domain.redaction import redact_urls

    # The URL may come from the environment, a file or the application's code.
    return redact_urls(text)
