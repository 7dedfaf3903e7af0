"""The verdict on an attempt, from the way its handler ended."""

from __future__ import annotations

import json
from typing import TypeGuard, TypeVar

from laneway.domain.claim import Claim
from laneway.domain.handler_signals import (
    Cancel,
    PublicError,
    Retry,
    Snooze,
    check_pause,
    find_suspension,
)
from laneway.domain.job import LONGEST_DELAY
from laneway.domain.redaction import redact
from laneway.domain.text import escape_text
from laneway.engine.run.attempt import Run
from laneway.engine.run.exception_text import message_of, name_of, traceback_of
from laneway.engine.run.retry_decision import decide
from laneway.errors import (
    InvalidInput,
    NondeterministicHandler,
    SubJobsFailed,
    WaitTimeout,
)
from laneway.store.leases import Verdict

E = TypeVar("E", bound=BaseException)

LONGEST_TYPE = 200
LONGEST_MESSAGE = 4000
LONGEST_TRACEBACK = 16000
ROLLED_BACK = "FinishRolledBack"
# The next attempt would end alike.
_FINAL = (InvalidInput, NondeterministicHandler, SubJobsFailed, WaitTimeout)


def error_json(
    kind: str, message: str, trace: str | None = None, *, is_public: bool = False
) -> str:
    """Encode an error for storage: redacted, safe for PostgreSQL, and bounded.

    `is_public`: every reader of the job may see the message.
    """
    body: dict[str, object] = {
        "type": escape_text(redact(kind))[:LONGEST_TYPE],
        "message": escape_text(redact(message))[:LONGEST_MESSAGE],
    }
    if trace:
        text = escape_text(redact(trace))
        if len(text) > LONGEST_TRACEBACK:
            half = LONGEST_TRACEBACK // 2
            text = f"{text[:half]}\n  …\n{text[-half:]}"
        body["traceback"] = text
    if is_public:
        body["public"] = True
    return json.dumps(body)


def own_error_json(kind: str, message: str) -> str:
    """Encode an error of Laneway itself, whose message every reader of the job may see."""
    return error_json(kind, message, is_public=True)


def redacted_error(text: str) -> str:
    """Redact an error encoded by another process, with the secrets known to this one."""
    error = json.loads(text)
    is_public = error.get("public") is True
    return error_json(error["type"], error["message"], error.get("traceback"), is_public=is_public)


def of_interruption(run: Run, error: BaseException) -> Verdict | None:
    """The verdict on a handler that was interrupted, by a stop or by itself."""
    return of_stop(run) if run.stop_reason else of_error(run, error)


def of_error(run: Run, error: BaseException) -> Verdict:
    """The verdict on a handler that raised any exception."""
    try:
        return _of_exception(run, error)
    except BaseException as broken:
        # An invalid signal such as Snooze("a while") or Cancel(None), or its own code raises.
        kind = "giveup" if _is(broken, InvalidInput) else "fail"
        return Verdict(run.claim, kind, error=describe(broken), ran_s=run.ran_s)


def _of_exception(run: Run, error: BaseException) -> Verdict:
    if (suspension := find_suspension(error)) is not None:
        return Verdict(run.claim, "wait", result=suspension.wait, ran_s=run.ran_s)
    if _is(error, Snooze):
        return Verdict(run.claim, "snooze", delay_s=_delay(error.seconds), ran_s=run.ran_s)
    if _is(error, Cancel):
        return Verdict(
            run.claim, "cancel", error=own_error_json("Cancel", error.reason), ran_s=run.ran_s
        )
    described = describe(error)
    if _is(error, Retry) and error.after is not None:
        delay = _delay(error.after)
        return Verdict(run.claim, "fail", error=described, delay_s=delay, ran_s=run.ran_s)
    if _is_final(error):
        return Verdict(run.claim, "giveup", error=described, ran_s=run.ran_s)
    return decide(run, error, described)


def _is_final(error: BaseException) -> bool:
    """Whether the next attempt would end alike; also a group with such an error."""
    if _is(error, BaseExceptionGroup):
        return any(_is_final(one) for one in error.exceptions)
    return any(_is(error, kind) for kind in _FINAL)


def _is(error: BaseException, kind: type[E]) -> TypeGuard[E]:
    """Like isinstance, without reading `__class__`, which user code may define."""
    return issubclass(type(error), kind)


def _delay(seconds: float) -> float:
    # Checked again: the handler may have changed the attribute.
    return min(check_pause(seconds, "seconds"), LONGEST_DELAY)


def of_bad_payload(run: Run, error: InvalidInput) -> Verdict:
    """The verdict on an invalid payload: a failure without retry."""
    return Verdict(
        run.claim, "giveup", error=own_error_json("InvalidInput", str(error)), ran_s=run.ran_s
    )


def of_bad_result(run: Run, error: InvalidInput) -> Verdict:
    """The verdict on a result that cannot be stored: a failure without retry.

    The handler has succeeded, so it must not run again.
    """
    text = own_error_json("InvalidResult", str(error))
    return Verdict(run.claim, "giveup", error=text, ran_s=run.ran_s)


def of_changed_since_approval(claim: Claim) -> Verdict:
    """The verdict on a job that was changed after its approval."""
    message = "payload or analysis is not what was approved: retry it to have it approved again"
    return Verdict(claim, "giveup", error=own_error_json("NotAsApproved", message), ran_s=0.0)


def of_stop(run: Run, result: str | None = None) -> Verdict | None:
    """The verdict on a handler that was stopped; None if the attempt is fenced."""
    match run.stop_reason:
        case "cancel":
            return Verdict(run.claim, "cancel", result=result, ran_s=run.ran_s)
        case "timeout":
            message = f"took longer than its timeout of {run.timeout:g} s"
            return decide(run, TimeoutError(message), own_error_json("Timeout", message))
        case "shutdown":
            return Verdict(run.claim, "release", ran_s=run.ran_s)
        case _:
            return None


def of_finish_in_transaction(run: Run, verdict: Verdict | None) -> Verdict:
    """The verdict on a handler that called ctx.finish in its own transaction.

    The database knows whether that transaction committed. If not, the given verdict counts; for a
    handler that just returned, the rollback is the failure.
    """
    if verdict is None or verdict.kind == "finish":
        message = "the transaction that ctx.finish was called in was not committed"
        error = own_error_json(ROLLED_BACK, message)
        return Verdict(run.claim, "confirm", error=error, ran_s=run.ran_s, may_be_finished=True)
    return verdict._replace(may_be_finished=True)


def describe(error: BaseException) -> str:
    """Encode an exception for storage: type, message and traceback."""
    is_public = _is(error, PublicError)
    return error_json(name_of(error), message_of(error), traceback_of(error), is_public=is_public)
