"""Laneway: job dispatch on PostgreSQL.

    from laneway import Laneway, Context

    lw = Laneway()

    @lw.handler("greet")
    async def greet(ctx: Context, name: str) -> str:
        return f"hello {name}"

The public names are those below, the errors in laneway.errors and the operators' verbs in
laneway.control. The names below load on first use, so that `import laneway` stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from laneway.app.job_type import JobType
    from laneway.app.laneway import Laneway
    from laneway.client import JobHandle
    from laneway.config.settings import Settings
    from laneway.domain.approval import Analysis, Approval
    from laneway.domain.declared import Lane, Limit
    from laneway.domain.end_hook import EndedJob
    from laneway.domain.handler_signals import Cancel, PublicError, Retry, Snooze, Suspended
    from laneway.domain.job import Job
    from laneway.domain.retention import Retention
    from laneway.domain.retry import RetryPolicy
    from laneway.domain.wait import JobResult
    from laneway.engine.run.context import Context, SyncContext
    from laneway.errors import LanewayError

_MODULES = {
    "Analysis": "laneway.domain.approval",
    "Approval": "laneway.domain.approval",
    "Cancel": "laneway.domain.handler_signals",
    "Context": "laneway.engine.run.context",
    "EndedJob": "laneway.domain.end_hook",
    "Job": "laneway.domain.job",
    "JobHandle": "laneway.client",
    "JobResult": "laneway.domain.wait",
    "JobType": "laneway.app.job_type",
    "Lane": "laneway.domain.declared",
    "Laneway": "laneway.app.laneway",
    "LanewayError": "laneway.errors",
    "Limit": "laneway.domain.declared",
    "PublicError": "laneway.domain.handler_signals",
    "Retention": "laneway.domain.retention",
    "Retry": "laneway.domain.handler_signals",
    "RetryPolicy": "laneway.domain.retry",
    "Settings": "laneway.config.settings",
    "Snooze": "laneway.domain.handler_signals",
    "Suspended": "laneway.domain.handler_signals",
    "SyncContext": "laneway.engine.run.context",
}

__all__ = [
    "Analysis",
    "Approval",
    "Cancel",
    "Context",
    "EndedJob",
    "Job",
    "JobHandle",
    "JobResult",
    "JobType",
    "Lane",
    "Laneway",
    "LanewayError",
    "Limit",
    "PublicError",
    "Retention",
    "Retry",
    "RetryPolicy",
    "Settings",
    "Snooze",
    "Suspended",
    "SyncContext",
    "__version__",
]


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'laneway' has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return __all__
