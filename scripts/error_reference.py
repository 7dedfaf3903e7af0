"""docs/reference/errors.md, from the error classes and the tables of each interface."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from laneway import errors
from laneway.api.http import idempotency, middleware
from laneway.api.http.problems import STATUS as HTTP
from laneway.cli.exits import exit_code
from laneway.rpc.server.error_interceptor import STATUS as GRPC

HEAD = """# Errors

Generated from the code: the error classes of `laneway.errors`, and the tables of HTTP, gRPC and the
command line. `code` is stable and the same everywhere: an attribute in Python, a field of HTTP
problems. The message names the value and the rule; its words may change. All errors derive from
`LanewayError`. `laneway doctor` finds most causes by itself.

"""

# Codes of HTTP without an error class.
PLAIN = {
    "method_not_allowed": (
        405,
        "The path exists, but not with this method.",
        "Use a method of the header `Allow`; [HTTP](http.md) lists all routes.",
    ),
    "internal": (
        500,
        "The server failed in a way that its authors did not expect.",
        "Look for the `request_id` of the response in the server's log, and report it.",
    ),
}

# Errors in the field `error.type` of a job that Laneway writes itself: cause and cure.
JOB_ERRORS = {
    "Timeout": (
        "the attempt ran longer than the handler's `timeout`",
        'raise `timeout`, or do less per job; `isolation="process"` runs it in a child to kill',
    ),
    "WorkerLost": (
        "the worker died or lost the database for longer than the lease",
        "none for one loss, the job is retried; if it repeats, look at memory and blocking calls",
    ),
    "Stalled": (
        'a handler with `stale="progress"` reported no progress for `stale_timeout_minutes`',
        "report progress more often, or raise the lane's bound",
    ),
    "ChildDied": (
        "the child process of an isolated handler ended by a signal or by itself",
        "read the job's log; often memory: raise `memory_mb`, or do less per job",
    ),
    "NotAsApproved": (
        "payload or analysis changed after the approval",
        "find who changed the row; `laneway jobs retry` analyses it again",
    ),
    "MaxAge": (
        "the job did not end within its type's `max_age`",
        "start more workers or raise `max_slots`; `laneway jobs retry` if it is still of use",
    ),
    "InvalidInput": (
        "a wrong payload, or the handler called Laneway with a wrong argument; not retried",
        "correct the submitter or the handler, or deploy the handler that fits",
    ),
    "InvalidResult": (
        "the result or a checkpoint cannot be stored as JSON; not retried",
        "return what the hint allows, or write `-> Any`",
    ),
    "QuotaExceeded": (
        "sub-jobs of a remote worker exceed a bound of its principal; retried like any failure",
        "raise the [bound](../howto/access.md#how-much) or wait, then `laneway jobs retry`",
    ),
    "AssignmentTooLarge": (
        "payload, checkpoint and steps are larger than a message to a remote worker may be",
        "submit a reference to large data, or run the job on a worker with a database",
    ),
    "UnknownJobType": (
        "a remote worker was sent a job type that it does not have",
        "deploy the worker with the handler, or let its token serve fewer job types",
    ),
    "Lost": (
        "a restore or SQL removed the state of the job",
        "`laneway db repair`, then `laneway jobs retry`",
    ),
}
JOBS_HEAD = """## Errors of jobs

`error.type` of a failed job or attempt is the class of the exception that its handler raised, or
one of these. `laneway admin failures` groups failures by it, and `laneway jobs ls --error TYPE`
finds the jobs.

"""
SQLSTATES = {
    "LW001": (
        "`invalid_input`: the message has the field and the rule",
        "correct the value",
    ),
    "LW002": (
        "`database_unavailable`: a claim in another transaction isolation than read committed",
        "`alter role … set default_transaction_isolation = 'read committed'`",
    ),
    "LW004": (
        "`quota_exceeded`: a bound of the grant is reached",
        "wait, or raise the bound",
    ),
}


def render_errors() -> str:
    """The page: a section for each code, with its classes."""
    by_code: dict[str, list[type[errors.LanewayError]]] = {}
    for error in known_errors():
        by_code.setdefault(error.code, []).append(error)
    parts = [_section(code, classes) for code, classes in by_code.items()]
    parts += [
        f"## {code}\n\nHTTP {status}\n\n| cause | cure |\n| --- | --- |\n| {cause} | {cure} |\n"
        for code, (status, cause, cure) in PLAIN.items()
    ]
    parts.append(JOBS_HEAD + _table("type", JOB_ERRORS))
    parts.append("## SQLSTATE\n\n" + _table("code", SQLSTATES))
    return HEAD + "\n".join(parts)


def known_errors() -> Iterator[type[errors.LanewayError]]:
    """The public errors, then those that only the server sends."""
    for module in (errors, idempotency, middleware):
        for value in vars(module).values():
            if (
                inspect.isclass(value)
                and issubclass(value, errors.LanewayError)
                and value.__module__ == module.__name__
                and value is not errors.LanewayError
            ):
                yield value


def split_cure(error: type[errors.LanewayError]) -> tuple[str, str]:
    """The cause and the cure in the docstring of an error."""
    cause, mark, cure = inspect.cleandoc(error.__doc__ or "").partition("Cure: ")
    if not mark:
        raise ValueError(f"{error.__name__}: the docstring has no line `Cure: …`")
    return " ".join(cause.split()), " ".join(cure.split())


def _table(name: str, rows: dict[str, tuple[str, str]]) -> str:
    shown = [f"| `{key}` | {cause} | {cure} |" for key, (cause, cure) in rows.items()]
    return f"| {name} | cause | cure |\n| --- | --- | --- |\n" + "\n".join(shown) + "\n"


def _section(code: str, classes: list[type[errors.LanewayError]]) -> str:
    shown = []
    if code in HTTP:
        shown.append(f"HTTP {int(HTTP[code])}")
    if code in GRPC:
        shown.append(f"gRPC `{GRPC[code].name}`")
    exits = {int(exit_code(each.__new__(each))) for each in classes}
    shown.append(f"exit code {' or '.join(map(str, sorted(exits)))}")
    rows = {each.__name__: split_cure(each) for each in classes}
    return f"## {code}\n\n{' · '.join(shown)}\n\n{_table('error', rows)}"
