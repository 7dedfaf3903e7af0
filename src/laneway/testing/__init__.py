"""Tools for tests of your application; the pytest plugin binds it to an empty database.

`run_due`, `run_due_async`   run everything that is due, in the test's own process
`clock`                      the clock of the database, which the test moves
`assert_submitted`           fail unless a job was submitted
`fail_next`                  let the next attempts of a job type fail
`inline`                     run jobs as they are submitted
`FakeContext`, `FakeSyncContext`   call a handler as a function; nothing is written

For drills with real processes:

`faults`    kills, stops and continues real processes
`proxy`     cuts, swallows or delays the connection between a program and its database
`history`   the events of a test run, recorded by the test and not by Laneway
`checker`   the laws of every history, as pure functions that yield violations

The names load on first use: pytest loads this package wherever laneway is installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from laneway.testing.bound_app import bind
    from laneway.testing.due import fail_next, inline, run_due, run_due_async
    from laneway.testing.fake_context import FakeContext, FakeSyncContext
    from laneway.testing.report import (
        AttemptFailed,
        AttemptReport,
        RunReport,
        StillRunning,
        TooManyAttempts,
    )
    from laneway.testing.scratch_database import open_scratch_database
    from laneway.testing.submitted_jobs import assert_submitted, submitted
    from laneway.testing.virtual_clock import clock

_MODULES = {
    "AttemptFailed": "report",
    "AttemptReport": "report",
    "FakeContext": "fake_context",
    "FakeSyncContext": "fake_context",
    "RunReport": "report",
    "StillRunning": "report",
    "TooManyAttempts": "report",
    "assert_submitted": "submitted_jobs",
    "bind": "bound_app",
    "clock": "virtual_clock",
    "fail_next": "due",
    "inline": "due",
    "open_scratch_database": "scratch_database",
    "run_due": "due",
    "run_due_async": "due",
    "submitted": "submitted_jobs",
}

__all__ = [
    "AttemptFailed",
    "AttemptReport",
    "FakeContext",
    "FakeSyncContext",
    "RunReport",
    "StillRunning",
    "TooManyAttempts",
    "assert_submitted",
    "bind",
    "clock",
    "fail_next",
    "inline",
    "open_scratch_database",
    "run_due",
    "run_due_async",
    "submitted",
]


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'laneway.testing' has no attribute {name!r}")
    return getattr(import_module(f"laneway.testing.{module}"), name)


def __dir__() -> list[str]:
    return __all__
