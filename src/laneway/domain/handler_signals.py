"""Exceptions by which a handler decides how its attempt ends."""

from __future__ import annotations

import math

from laneway.errors import InvalidInput


class PublicError(Exception):
    """A failure whose message all readers of the job see: `raise PublicError("no page 7")`.

    Only the job's submitter and readers with jobs:debug see messages of other exceptions. `raise
    PublicError(…) from error` keeps the private cause in the traceback.
    """


class Retry(Exception):
    """Try again, charged like a failure: `raise Retry("busy", after=30)`."""

    def __init__(self, message: str = "asked for a retry", *, after: float | None = None) -> None:
        super().__init__(message)
        self.after = None if after is None else check_pause(after, "after")


class Snooze(Exception):
    """Run again after some seconds, without charge: `raise Snooze(60)`.

    The database pauses the job for at least 0.1 s, and longer after many uncharged attempts.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = check_pause(seconds, "seconds")
        super().__init__(f"snoozed for {seconds} s")


class Cancel(Exception):
    """End the job as cancelled: `raise Cancel("nothing to do")`."""

    def __init__(self, reason: str = "cancelled by its handler") -> None:
        super().__init__(reason)
        self.reason = reason


class Suspended(BaseException):
    """Raised by `ctx.run_all`, `ctx.wait_event` and `ctx.sleep` to end the attempt: the job waits.

    The handler runs again from the top when what it waits for came. Not an Exception, so that
    `except Exception` in a handler does not swallow it. It is neither a success nor a failure.
    """

    def __init__(self, wait: str) -> None:
        super().__init__(f"waits for {wait!r}")
        # The name of the wait.
        self.wait = wait


def find_suspension(error: BaseException) -> Suspended | None:
    """The suspension that an exception is, or that all exceptions of a group are."""
    if isinstance(error, Suspended):
        return error
    if isinstance(error, BaseExceptionGroup):
        found = [find_suspension(one) for one in error.exceptions]
        return found[0] if all(one is not None for one in found) else None
    return None


def check_pause(seconds: object, field: str) -> float:
    """A number of seconds to wait; negative numbers count as 0."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or math.isnan(seconds):
        raise InvalidInput(field, f"must be a number of seconds, not {seconds!r}")
    return max(0.0, seconds)
