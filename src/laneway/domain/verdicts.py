"""What a handler raises to say how its attempt ends, other than by returning or failing."""

from __future__ import annotations


class PublicError(Exception):
    """A failure with a message for everybody who may see the job: `raise PublicError("no page 7")`.

    Messages of other exceptions need jobs:debug, or the job's submitter. `raise PublicError(…) from
    error` keeps the private cause in the traceback.
    """


class Retry(Exception):
    """Try again, charged like a failure: `raise Retry("busy", after=30)`."""

    def __init__(self, message: str = "asked for a retry", *, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class Snooze(Exception):
    """Come back after some seconds, without charge: `raise Snooze(60)`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"snoozed for {seconds} s")
        self.seconds = seconds


class Cancel(Exception):
    """End the job as cancelled: `raise Cancel("nothing to do")`."""

    def __init__(self, reason: str = "cancelled by its handler") -> None:
        super().__init__(reason)
        self.reason = reason
