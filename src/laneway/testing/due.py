"""Run what is due: `run_due`, its async form, and the failures that a test injects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

from laneway.engine.run.attempt import current_run
from laneway.errors import InvalidInput, LanewayError
from laneway.testing.bound_app import MAX_JOBS, TIMEOUT_S, current
from laneway.testing.recorded_handlers import Failure
from laneway.testing.report import RunReport
from laneway.testing.submitted_jobs import name_of

if TYPE_CHECKING:
    from laneway.testing.submitted_jobs import JobTypeOrName


async def run_due_async(
    *,
    raise_failures: bool = True,
    max_jobs: int = MAX_JOBS,
    timeout: float = TIMEOUT_S,
    concurrency: int = 1,
) -> RunReport:
    """Run every job that is due to its end, on this event loop; return what ran.

    Fires due schedules, reclaims lapsed leases and expires old jobs first. Jobs that become due
    meanwhile run too; retries wait until the clock reaches them. Jobs run one by one, lane after
    lane, with `concurrency` above 1 also beside each other.

    The exceptions of handlers are raised at the end, unless `raise_failures=False`; those of
    `fail_next` are not. Raises TooManyAttempts after `max_jobs`, StillRunning after `timeout`.
    """
    report = await current().run_due(max_jobs=max_jobs, timeout=timeout, concurrency=concurrency)
    if raise_failures:
        report.raise_failures()
    return report


def run_due(
    *,
    raise_failures: bool = True,
    max_jobs: int = MAX_JOBS,
    timeout: float = TIMEOUT_S,
    concurrency: int = 1,
) -> RunReport:
    """`run_due_async` for tests without an event loop."""
    if _is_in_loop():
        raise LanewayError(
            "run_due was called inside a running event loop, which it would block: use"
            " `await run_due_async()`"
        )

    async def run() -> RunReport:
        # Connections belong to one event loop, and this one ends here.
        lw = current().lw
        await lw.disconnect()
        try:
            return await run_due_async(
                raise_failures=raise_failures,
                max_jobs=max_jobs,
                timeout=timeout,
                concurrency=concurrency,
            )
        finally:
            await lw.disconnect()

    return asyncio.run(run())


def fail_next(job_type: JobTypeOrName, error: Failure, *, times: int = 1) -> None:
    """Let the next attempts of a job type raise this instead of calling the handler."""
    kind: object = error if isinstance(error, type) else type(error)
    if not (isinstance(kind, type) and issubclass(kind, BaseException)):
        raise InvalidInput("error", f"must be an exception, got {error!r}")
    if times < 1:
        raise InvalidInput("times", f"must be at least 1, got {times}")
    name, lw = name_of(job_type), current().lw
    if lw.handlers.get(name) is None:
        raise InvalidInput("job_type", f"the application has no handler {name!r}")
    current().injected.add(name, error, times)


@contextmanager
def inline() -> Iterator[None]:
    """Run jobs as they are submitted: inside `with`, a submit returns after `run_due`.

    A job that a handler submits runs after that handler. A job submitted with `conn=` belongs to
    your transaction, and runs with the next submit, or `run_due`, after the commit.
    """
    lw = current().lw
    verbs: list[tuple[object, str, Callable[[Any], Any]]] = [
        (lw, "submit", _run_after),
        (lw, "submit_many", _run_after),
        (lw.sync, "submit", _run_after_blocking),
        (lw.sync, "submit_many", _run_after_blocking),
    ]
    for owner, verb, around in verbs:
        if verb in vars(owner):
            raise LanewayError("inline is already on")
        setattr(owner, verb, around(getattr(owner, verb)))
    try:
        yield
    finally:
        for owner, verb, _ in verbs:
            vars(owner).pop(verb, None)


def _run_after(submit: Any) -> Any:
    @wraps(submit)
    async def call(*args: Any, **kwargs: Any) -> Any:
        made = await submit(*args, **kwargs)
        if kwargs.get("conn") is None and current_run.get() is None:
            await run_due_async()
        return made

    return call


def _run_after_blocking(submit: Any) -> Any:
    @wraps(submit)
    def call(*args: Any, **kwargs: Any) -> Any:
        made = submit(*args, **kwargs)
        if kwargs.get("conn") is None and current_run.get() is None:
            run_due()
        return made

    return call


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
