"""Reports failures of handlers to Sentry, with the job as tags.

    sentry_sdk.init(dsn="…")
    install(lw)

An exception that is retried is a warning, the last one an error. Other last failures, such as a
timeout, are errors without an exception, from the worker's log line. Payloads are not sent.
"""

# ruff: noqa: E402 - a missing package is named before the import below fails

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from laneway.extras import require

require("sentry", "laneway.integrations.sentry")

import sentry_sdk

from laneway.app.laneway import Laneway
from laneway.domain.handler_signals import Cancel, Retry, Snooze
from laneway.errors import StaleAttempt

# A handler raises these on purpose, or after its job was taken away.
_EXPECTED: Final = (Cancel, Snooze, StaleAttempt)
_TAGS: Final = ("job_id", "job_type", "lane", "attempt")


def install(lw: Laneway) -> None:
    """Report the failures of all handlers; call `sentry_sdk.init` yourself."""
    lw.middleware(_report_async)
    lw.middleware(_report)
    sentry_sdk.get_global_scope().add_event_processor(_from_log_line)


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
            raise


def _from_log_line(event: Any, hint: Any) -> Any:
    """Tag the event of a worker's log line; drop it if its exception was reported already."""
    fields = event.get("extra", {})
    if event.get("logger") != "laneway" or "error_type" not in fields:
        return event
    if fields.get("traceback"):
        return None
    tags = {f"laneway.{name}": str(fields[name]) for name in _TAGS if name in fields}
    return {**event, "tags": {**event.get("tags", {}), **tags}}
