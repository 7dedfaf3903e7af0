"""Converts messages to our values and back; InvalidInput names the field and the rule."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from laneway.domain.approval import Analysis
from laneway.domain.claim import Claim
from laneway.domain.duration import YEAR_S
from laneway.domain.job import LONGEST_DELAY
from laneway.domain.job_type_policy import TypeRecord
from laneway.domain.payload import PayloadLimits, decode, encode
from laneway.domain.redaction import redact
from laneway.domain.text import check_text, escape_text
from laneway.engine.run.attempt_outcomes import error_json, own_error_json
from laneway.engine.run.handler_channel import LONGEST_LINE
from laneway.errors import InvalidInput
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc.declaration import write_declaration
from laneway.rpc.server.assignment_bytes import write_assignments
from laneway.rpc.server.assignment_queue import Beat, OutAssignment
from laneway.rpc.server.handshake import MAX_HELD, MAX_TYPES, bounded
from laneway.store.leases import Assignment, LogEntry, Report, Verdict
from laneway.store.steps import StepResult, StepWrite

MAX_CLAIMS: Final = 10_000
MAX_RESULTS: Final = 1_000
MAX_UPDATES: Final = 1_000
MAX_LINES: Final = 10_000
MAX_STEPS: Final = 1_000
MAX_LIMITS: Final = 100
MAX_SUB_JOBS: Final = 1_000
STEP_NAME_BYTES: Final = 200
# The most parts of one call, by the name of their field.
MAX_OF: Final = {
    "claims": MAX_CLAIMS,
    "holds": MAX_HELD,
    "job_types": MAX_TYPES,
    "results": MAX_RESULTS,
    "updates": MAX_UPDATES,
    "lines": MAX_LINES,
    "steps": MAX_STEPS,
    "wants": MAX_LIMITS,
    "inside": MAX_LIMITS,
    "keeps": MAX_LIMITS,
    "ahead": MAX_LIMITS,
    "jobs": MAX_SUB_JOBS,
}

_LARGEST: Final = 1e100
_LONGEST_RUN_MS: Final = YEAR_S * 1000
# As handlers name them and as messages do.
_ISOLATIONS: Final = {
    "async": pb.ISOLATION_ASYNC,
    "thread": pb.ISOLATION_THREAD,
    "process": pb.ISOLATION_PROCESS,
}
_LEVELS: Final = frozenset({"debug", "info", "warning", "error"})
# jsonb may expand these numbers beyond its limits, or to thousands of digits.
_UNUSUAL_NUMBER: Final = re.compile(r"[0-9]{18}|[0-9][eE]")

ANSWERS: Final = {
    "accepted": pb.ANSWER_ACCEPTED,
    "given": pb.ANSWER_ACCEPTED,
    "granted": pb.ANSWER_ACCEPTED,
    "full": pb.ANSWER_ACCEPTED,
    "kept": pb.ANSWER_ACCEPTED,
    "fenced": pb.ANSWER_FENCED,
    "refused": pb.ANSWER_FENCED,
    "cancel_requested": pb.ANSWER_CANCEL_REQUESTED,
    "busy": pb.ANSWER_UNSPECIFIED,
}


class ProgressUpdate(NamedTuple):
    """One update of a running attempt: progress, log lines and steps."""

    report: Report | None
    lines: list[LogEntry]
    steps: list[StepResult]


class ProgressReply(NamedTuple):
    """The answer to an update, and its steps as later attempts will read them."""

    answer: str
    steps: tuple[StepWrite, ...] = ()


# -- out --------------------------------------------------------------------------------------


def write_batch(batch: Sequence[OutAssignment] | Beat) -> bytes:
    """The bytes of one message of a stream."""
    if isinstance(batch, Beat):
        return pb.StreamJobsResponse(
            beat=True, token_expires_in_ms=batch.token_expires_in_ms
        ).SerializeToString()
    return write_assignments(batch)


# -- results ----------------------------------------------------------------------------------


def check_results(results: Sequence[pb.Result]) -> None:
    """Refuses results without a verdict; the handler's return value is checked later."""
    bounded("results", len(results), MAX_RESULTS)
    for i, one in enumerate(results):
        outcome = one.WhichOneof("outcome")
        if outcome == "finish" and 0 <= one.ran_ms <= _LONGEST_RUN_MS:
            continue
        if outcome is None:
            raise InvalidInput(f"results[{i}].outcome", "must be set")
        milliseconds(one.ran_ms, f"results[{i}].ran_ms", YEAR_S)
        if outcome == "fail" and one.fail.HasField("retry_after_ms"):
            milliseconds(
                one.fail.retry_after_ms, f"results[{i}].fail.retry_after_ms", LONGEST_DELAY
            )
        elif outcome == "snooze":
            milliseconds(one.snooze.delay_ms, f"results[{i}].snooze.delay_ms", LONGEST_DELAY)
        elif outcome == "wait":
            check_text(one.wait.name, f"results[{i}].wait.name", max_bytes=STEP_NAME_BYTES)


def read_result(
    one: pb.Result, claim: Claim, limits: PayloadLimits, *, is_analysis: bool
) -> Verdict:
    """The verdict on an attempt; a result that cannot be stored fails the job."""
    ran_s = one.ran_ms / 1000
    outcome = one.WhichOneof("outcome")
    if outcome == "finish":
        try:
            text = _result(one.finish.result, limits)
            if is_analysis:
                text = _analysis(text, limits)
        except InvalidInput as error:
            # The handler has succeeded: it must not run again.
            text = own_error_json("InvalidResult", str(error))
            return Verdict(claim, "giveup", error=text, ran_s=ran_s)
        return Verdict(claim, "analyzed" if is_analysis else "finish", text, None, None, ran_s)
    if outcome == "fail":
        fail = one.fail
        delay_s = fail.retry_after_ms / 1000 if fail.HasField("retry_after_ms") else None
        kind = "giveup" if fail.is_final else "fail"
        return Verdict(claim, kind, error=_error(fail.error), delay_s=delay_s, ran_s=ran_s)
    if outcome == "snooze":
        return Verdict(claim, "snooze", delay_s=one.snooze.delay_ms / 1000, ran_s=ran_s)
    if outcome == "cancel":
        return _cancelled(one.cancel, claim, limits, ran_s)
    if outcome == "wait":
        return Verdict(claim, "wait", result=one.wait.name, ran_s=ran_s)
    # An attempt that was released before its handler began did not run.
    return Verdict(claim, "release", ran_s=ran_s or None)


def _cancelled(cancel: pb.Cancel, claim: Claim, limits: PayloadLimits, ran_s: float) -> Verdict:
    """The verdict on a cancelled attempt; its partial result is kept if it can be stored."""
    error = own_error_json("Cancel", cancel.reason) if cancel.reason else None
    result = None
    if cancel.result:
        try:
            result = _result(cancel.result, limits)
        except InvalidInput as refused:
            error = own_error_json("Cancel", f"{cancel.reason} ({refused})".strip())
    return Verdict(claim, "cancel", result=result, error=error, ran_s=ran_s)


def _error(error: pb.Error) -> str:
    kind = error.type or "Error"
    trace = error.traceback or None
    return error_json(kind, error.message or kind, trace, is_public=error.is_public)


def _result(text: str, limits: PayloadLimits) -> str:
    if not text or text == "null":
        return "null"
    return read_json(text, "result", limits)


def _analysis(text: str, limits: PayloadLimits) -> str:
    """A plan and an estimate as Laneway stores them: {plan, cost, warnings}."""
    given = decode(text, limits, field="analysis")
    if not isinstance(given, dict) or not given.keys() <= {"plan", "cost", "warnings"}:
        raise InvalidInput("analysis", "must be an object of plan, cost and warnings")
    cost = given.get("cost") or {}
    if not isinstance(cost, dict) or not cost.keys() <= {"amount", "currency", "tokens"}:
        raise InvalidInput("analysis.cost", "must be {amount, currency} or {tokens}")
    warnings = given.get("warnings") or []
    if not isinstance(warnings, list):
        raise InvalidInput("analysis.warnings", "must be a list of texts")
    try:
        analysis = Analysis(
            plan=given.get("plan"),
            cost=cost.get("amount"),
            currency=cost.get("currency"),
            tokens=cost.get("tokens"),
            warnings=warnings,
        ).to_dict()
    except InvalidInput as error:
        raise InvalidInput(f"analysis.{error.field}", error.rule) from None
    return encode(analysis, limits=limits, field="analysis")


def read_json(text: str, field: str, limits: PayloadLimits, most: int | None = None) -> str:
    """The same JSON in a form that jsonb accepts; InvalidInput names the invalid part."""
    most = limits.max_bytes if most is None else most
    if len(text) > most or len(text.encode()) > most:
        raise InvalidInput(field, f"is {len(text.encode())} bytes of JSON; at most {most}")
    value = decode(text, limits, field=field)
    if _UNUSUAL_NUMBER.search(text):
        return encode(value, limits=limits, field=field)
    return text


# -- progress ---------------------------------------------------------------------------------


def check_updates(updates: Sequence[pb.Update]) -> None:
    """Refuses more updates than one call may carry."""
    bounded("updates", len(updates), MAX_UPDATES)
    bounded("lines", sum(len(one.lines) for one in updates), MAX_LINES)
    bounded("steps", sum(len(one.steps) for one in updates), MAX_STEPS)


def read_update(one: pb.Update, claim: Claim, field: str, limits: PayloadLimits) -> ProgressUpdate:
    """Reads an update; an empty one still counts as progress."""
    lines = [_line(line, claim, f"{field}.lines[{i}]") for i, line in enumerate(one.lines)]
    steps = [_step(step, claim, f"{field}.steps[{i}]", limits) for i, step in enumerate(one.steps)]
    checkpoint = None
    if one.HasField("checkpoint"):
        checkpoint = read_json(one.checkpoint, f"{field}.checkpoint", limits)
    report = Report(
        claim,
        escape_text(redact(one.stage))[:256] if one.HasField("stage") else None,
        _number(one.done, f"{field}.done") if one.HasField("done") else None,
        _number(one.total, f"{field}.total") if one.HasField("total") else None,
        escape_text(redact(one.message))[:1024] if one.HasField("message") else None,
        checkpoint,
    )
    is_empty = report.count(None) == len(report) - 1
    return ProgressUpdate(None if is_empty and (lines or steps) else report, lines, steps)


def _line(line: pb.LogLine, claim: Claim, field: str) -> LogEntry:
    if line.number < 1:
        raise InvalidInput(f"{field}.number", "must be 1 or more")
    if line.level not in _LEVELS:
        raise InvalidInput(f"{field}.level", "must be debug, info, warning or error")
    text = escape_text(redact(line.message))
    if len(text) > LONGEST_LINE:
        text = text[:LONGEST_LINE] + " …"
    age_s = milliseconds(line.age_ms, f"{field}.age_ms", YEAR_S)
    return LogEntry(claim, line.number, line.level, text, age_s)


def _step(step: pb.Step, claim: Claim, field: str, limits: PayloadLimits) -> StepResult:
    name = check_text(step.name, f"{field}.name", max_bytes=STEP_NAME_BYTES)
    result = read_json(step.result or "null", f"{field}.result", limits, limits.step_bytes)
    took_s = milliseconds(step.took_ms, f"{field}.took_ms", YEAR_S)
    return StepResult(claim, name, result, took_s)


def write_progressed(update: ProgressUpdate, reply: ProgressReply) -> pb.Progressed:
    """The answer to an update, with the stored steps as later attempts will read them."""
    steps = [
        pb.Step(name=step.name, result=stored.result)
        for step, stored in zip(update.steps, reply.steps, strict=True)
        if stored.result is not None
    ]
    return pb.Progressed(answer=ANSWERS[reply.answer], steps=steps)


# -- limits -----------------------------------------------------------------------------------


def read_counts(given: Mapping[str, int], field: str, least: int) -> dict[str, int]:
    """Counts of holds by limit, in the order of names."""
    bounded(field, len(given), MAX_LIMITS)
    for name, count in given.items():
        check_text(name, field, max_bytes=STEP_NAME_BYTES)
        if not least <= count <= MAX_CLAIMS:
            raise InvalidInput(f"{field}[{name}]", f"must be from {least} to {MAX_CLAIMS}")
    return dict(sorted(given.items()))


def milliseconds(value: int, field: str, longest_s: float) -> float:
    if not 0 <= value <= longest_s * 1000:
        raise InvalidInput(field, f"must be from 0 to {longest_s * 1000:.0f}")
    return value / 1000


def _number(value: float, field: str) -> float:
    if not abs(value) <= _LARGEST:
        raise InvalidInput(field, f"must be finite, at most {_LARGEST:g}")
    return round(value, 9)


def read_assignment(
    claim: Claim, job_type: str, one: pb.Assignment, max_retries: int
) -> Assignment:
    """The assignment that a worker received, for its executor.

    `max_retries` counts if the server does not send it.
    """
    return Assignment(
        claim,
        0,
        job_type,
        one.payload,
        one.checkpoint if one.HasField("checkpoint") else None,
        one.retries,
        claim.attempt == 1,
        False,
        one.max_retries if one.HasField("max_retries") else max_retries,
        tuple(one.tags) if one.tags else (),
        one.created_by or None,
        None,
        one.traceparent or None,
    )


def write_job_type(record: TypeRecord) -> pb.JobType:
    """The message that declares a job type."""
    return pb.JobType(
        name=record.name,
        isolation=_ISOLATIONS[record.isolation],
        has_analysis=record.has_analysis,
        declaration=write_declaration(record),
    )


def isolations_of(one: pb.JobType) -> set[str]:
    """The isolations in which a server counts jobs of a type and its analyses."""
    kinds = {kind for kind, isolation in _ISOLATIONS.items() if isolation == one.isolation}
    return kinds | {"thread"} if one.has_analysis and "async" not in kinds else kinds
