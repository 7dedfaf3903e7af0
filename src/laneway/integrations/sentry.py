"""Reports failures of handlers to Sentry, with the job as tags.

    sentry_sdk.init(dsn="…")
    install(lw)

An exception that is retried is a warning, the last one an error. Other last failures are errors
from the worker's log line, without an exception: a timeout, a failed analysis, the exception of a
middleware that was registered before. Payloads are not sent, but Sentry adds local variables of
your frames, unless `include_local_variables=False`.
"""

# ruff: noqa: E402 - a missing package is named before the import below fails

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final

from laneway.extras import require

require("sentry", "laneway.integrations.sentry")

import sentry_sdk

from laneway.app.laneway import Laneway
from laneway.domain.handler_signals import Cancel, Retry, Snooze
from laneway.errors import StaleAttempt
from laneway.observability.safe_logger import PREFIX

# A handler raises these on purpose, or after its job was taken away.
_EXPECTED: Final = (Cancel, Snooze, StaleAttempt)
_TAGS: Final = ("job_id", "job_type", "lane", "attempt")
# Attempts with a reported exception whose log line may still come; the oldest are forgotten.
MAX_REMEMBERED: Final = 10_000
_reported_attempts: dict[tuple[str, str], None] = {}
_lock = Lock()
_UNKNOWN: Final = object()


def install(lw: Laneway) -> None:
    """Report the failures of all handlers; call `sentry_sdk.init` yourself."""
    lw.middleware(_report_async)
    lw.middleware(_report)
    scope = sentry_sdk.get_global_scope()
    scope.add_event_processor(_from_log_line)
    scope.add_event_processor(_without_own_variables)


async def _report_async(ctx: Any, call_next: Callable[[], Awaitable[Any]]) -> Any:
    with _reported(ctx):
        return await call_next()


def _report(ctx: Any, call_next: Callable[[], Any]) -> Any:
    with _reported(ctx):
        return call_next()


@contextmanager
def _reported(ctx: Any) -> Iterator[None]:
    with sentry_sdk.isolation_scope() as scope:
        scope.set_transaction_name(ctx.job_type)
        scope.set_tags({f"laneway.{name}": str(getattr(ctx, name)) for name in _TAGS})
        try:
            yield
        except _EXPECTED:
            raise
        except Exception as error:
            if ctx.is_last_attempt or not isinstance(error, Retry):
                scope.set_level("error" if ctx.is_last_attempt else "warning")
                sentry_sdk.capture_exception(error)
                _remember(str(ctx.job_id), str(ctx.attempt))
            raise


def _remember(job_id: str, attempt: str) -> None:
    # Handlers report from threads too.
    with _lock:
        _reported_attempts[job_id, attempt] = None
        if len(_reported_attempts) > MAX_REMEMBERED:
            del _reported_attempts[next(iter(_reported_attempts))]


def _was_reported(job_id: str, attempt: str) -> bool:
    """Whether the exception of this attempt was reported; asked once, by its log line."""
    with _lock:
        return _reported_attempts.pop((job_id, attempt), _UNKNOWN) is not _UNKNOWN


def _without_own_variables(event: Any, hint: Any) -> Any:
    """Remove the local variables of Laneway's own frames, which hold payloads."""
    for error in (event.get("exception") or {}).get("values") or ():
        for frame in (error.get("stacktrace") or {}).get("frames") or ():
            if (frame.get("module") or "").partition(".")[0] == "laneway":
                frame.pop("vars", None)
    return event


def _from_log_line(event: Any, hint: Any) -> Any:
    """Tag the event of a worker's log line; drop it if its exception was reported already."""
    extra = event.get("extra", {})
    if event.get("logger") != "laneway" or not {"error_type", f"{PREFIX}error_type"} & extra.keys():
        return event
    own = {name: extra.get(PREFIX + name, extra.get(name)) for name in _TAGS}
    # A child reports to Sentry itself, and this process does not know what.
    by_child = extra.get("in_child") and extra.get("traceback")
    if _was_reported(str(own["job_id"]), str(own["attempt"])) or by_child:
        return None
    tags = {f"laneway.{name}": str(value) for name, value in own.items() if value is not None}
    return {**event, "tags": {**event.get("tags", {}), **tags}}
