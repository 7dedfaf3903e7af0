"""From how a handler ended to the verdict on its attempt: pure, written in one place."""

from __future__ import annotations

import json
import traceback

from laneway.domain.payload import escape_text
from laneway.domain.verdicts import Cancel, Retry, Snooze
from laneway.engine.run import Run
from laneway.errors import InvalidInput
from laneway.store.leases import Verdict

LONGEST_MESSAGE = 4000
LONGEST_TRACEBACK = 16000


def error_json(kind: str, message: str, trace: str | None = None) -> str:
    """An error as stored: text made safe for PostgreSQL and bounded."""
    body = {"type": kind, "message": escape_text(message)[:LONGEST_MESSAGE]}
    if trace:
        text = escape_text(trace)
        if len(text) > LONGEST_TRACEBACK:
            half = LONGEST_TRACEBACK // 2
            text = f"{text[:half]}\n  …\n{text[-half:]}"
        body["traceback"] = text
    return json.dumps(body)


def of_error(run: Run, error: BaseException) -> Verdict:
    """The verdict on a handler that raised."""
    if isinstance(error, Snooze):
        return Verdict(run.claim, "snooze", delay_s=max(0.0, error.seconds), ran_s=run.ran_s)
    if isinstance(error, Cancel):
        return Verdict(
            run.claim, "cancel", error=error_json("Cancel", error.reason), ran_s=run.ran_s
        )
    described = describe(error)
    if isinstance(error, Retry):
        delay = None if error.after is None else max(0.0, error.after)
        return Verdict(run.claim, "fail", error=described, delay_s=delay, ran_s=run.ran_s)
    return Verdict(run.claim, "fail", error=described, ran_s=run.ran_s)


def of_bad_payload(run: Run, error: InvalidInput) -> Verdict:
    """A payload the handler cannot take will not get better: no retry."""
    return Verdict(
        run.claim, "giveup", error=error_json("InvalidInput", str(error)), ran_s=run.ran_s
    )


def of_stop(run: Run, result: str | None = None) -> Verdict | None:
    """The verdict on a handler told to stop; None where nothing may be written any more."""
    match run.stop_reason:
        case "cancel":
            return Verdict(run.claim, "cancel", result=result, ran_s=run.ran_s)
        case "timeout":
            message = f"took longer than its timeout of {run.handler.timeout:g} s"
            return Verdict(run.claim, "fail", error=error_json("Timeout", message), ran_s=run.ran_s)
        case "shutdown":
            return Verdict(run.claim, "release", ran_s=run.ran_s)
        case _:
            return None


def describe(error: BaseException) -> str:
    """An exception as stored: its type, its message, and where it came from in the handler."""
    trace = "".join(traceback.format_exception(error))
    return error_json(type(error).__name__, str(error) or type(error).__name__, trace)
