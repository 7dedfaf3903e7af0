"""Errors of values that were given in place of a job or of a list of jobs."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Coroutine
from typing import Final

from laneway.domain.text import shown
from laneway.errors import InvalidInput

# The right form, for a handler `mail` with an argument `user`.
_JOB: Final = "mail.job(user=1)"
_ADDED: Final = (
    'write flow.add(mail, user=1), flow.add(mail.job(user=1)) or flow.add("mail", {"user": 1})'
)


def not_a_list(jobs: object) -> InvalidInput:
    """The error of jobs that are not a list."""
    close_coroutine(jobs)
    return InvalidInput("jobs", f"must be a list of jobs: write [{_JOB}], not {shown(jobs)}")


def problem_of_job(one: object) -> str:
    """The rule that a value breaks which is not a job."""
    if isinstance(one, Awaitable):
        close_coroutine(one)
        return f"is a call that was not awaited: give a job, as in {_JOB}"
    if isinstance(getattr(one, "duplicate", None), bool):
        return f"was submitted already: give a job that is not, as in {_JOB}"
    if hasattr(one, "flow_job"):
        return f"is a handler without its arguments: give a job, as in {_JOB}"
    return (
        f"must be a job, as in {_JOB}, a tuple (job_type, payload, options) or a mapping,"
        f" not {shown(one)}"
    )


def problem_of_added(one: object) -> str:
    """The rule that the first argument of `flow.add` breaks."""
    if isinstance(one, Awaitable):
        close_coroutine(one)
        return f"takes no call of a handler: {_ADDED}"
    if isinstance(getattr(one, "duplicate", None), bool):
        return f"takes no job that was submitted already: {_ADDED}"
    if inspect.isroutine(one):
        name = getattr(one, "__name__", "a function")
        return f"takes no plain function such as {name}: decorate it with @lw.handler, and {_ADDED}"
    return f"takes no {type(one).__name__}: {_ADDED}"


def close_coroutine(given: object) -> None:
    """Close a coroutine that nothing awaits, so that Python does not warn of it too."""
    if isinstance(given, Coroutine):
        given.close()
