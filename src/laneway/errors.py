"""Every error Laneway raises on purpose.

LanewayError
├── InvalidInput            an input breaks a rule; names the field and the rule
│   └── InvalidResult       a result, step result or checkpoint cannot be stored as JSON
├── NotFound                no such job, lane, worker or job type
├── Refused                 the current state does not allow the verb
│   ├── StaleAttempt        a write named an attempt that is not the one running
│   ├── JobFailed           the awaited job ended in failed or cancelled
│   │   └── SubJobsFailed   sub-jobs of a handler ended in failed or cancelled
│   └── NondeterministicHandler  a handler asked for other waits than in its earlier run
├── WaitTimeout             an event did not come in time; also a TimeoutError
├── DatabaseUnavailable     PostgreSQL cannot be reached, or refuses to serve
│   ├── SchemaMismatch      the schema is missing, older or newer than this code can use
│   └── UnsuitableDatabase  the database or role is set up so that no retry can help
│       ├── MissingRight    the database role lacks a right
│       └── LoginRefused    wrong password, no such role, or no such database
├── UnreadableValue         the database holds a value that this code cannot read
├── Unauthenticated         the credentials are missing or invalid
├── Forbidden               the principal may not do this
├── RateLimited             too many requests; says when to try again
│   └── QuotaExceeded       more jobs would wait than the principal's grants allow
├── ServerError             the server's response could not be used
│   └── ServerUnreachable   the server cannot be reached, or refuses to serve for now
├── NeedsDatabase           the verb needs a database connection, and this process has none
└── ConfigError             a setting is wrong; names the setting
    └── MissingExtra        a package is not installed; says how to install it

`code` is stable and the same in HTTP problems, gRPC statuses and the command line. Each docstring
says what happened and, as `Cure:`, what to do; docs/reference/errors.md is generated from them.
"""

from __future__ import annotations


class LanewayError(Exception):
    """Something Laneway refuses or cannot do."""

    code = "error"


class InvalidInput(LanewayError):
    """An input breaks a rule.

    A handler that raises it fails its job at once, without a retry.

    Cure: Correct the field that the message names; a retry with the same value fails again.
    """

    code = "invalid_input"

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule


class InvalidResult(InvalidInput):
    """A result of a handler or step, or a checkpoint, that cannot be stored as JSON.

    Cure: Return what the handler's return hint allows and JSON can hold, or write `-> Any`.
    """


class NotFound(LanewayError):
    """No such object; lanes, limits, schedules, roles and principals set `kind` and `name`.

    Cure: Check the id or name; `laneway jobs ls`, `laneway lanes ls` and so on list what
    exists. Retention may have deleted an ended job.
    """

    code = "not_found"

    def __init__(self, message: str = "", *, kind: str = "", name: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.name = name


class Refused(LanewayError):
    """The current state does not allow the verb.

    Cure: Read the current state with `laneway jobs show` or `laneway jobs explain`, then choose
    a verb that it allows.
    """

    code = "refused"


class StaleAttempt(Refused):
    """The attempt is no longer the one running: its lease lapsed or the job ended.

    Cure: Stop the work of this attempt; another attempt owns the job. If the handler was only
    slow, raise the lane's `lease_seconds` or look for what blocked its process.
    """

    code = "stale_attempt"


class JobFailed(Refused):
    """The awaited job ended in failed or cancelled.

    Cure: Read the job's error with `laneway jobs show`; after the fix, `laneway jobs retry`.
    """

    code = "job_failed"


class SubJobsFailed(JobFailed):
    """Sub-jobs of a handler ended in failed or cancelled; `failed` has their ids.

    A handler that does not catch it fails its job at once, without a retry.

    Cure: Retry the job: its failed sub-jobs are retried first. Or call `ctx.run_all` with
    `failures="return"` and look at each result.
    """

    code = "sub_jobs_failed"

    def __init__(self, message: str, failed: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.failed = failed


class NondeterministicHandler(Refused):
    """A handler asked for other waits than in its earlier run; the message names both.

    Its job fails at once, without a retry: what it remembers does not fit to its code any more.

    Cure: Let the names and the order of waits depend only on the payload and on results of
    steps. After a change of the code, cancel the job and submit it again.
    """

    code = "nondeterministic_handler"


class WaitTimeout(LanewayError, TimeoutError):
    """The event that a handler waited for did not come in time.

    A handler that does not catch it fails its job at once, without a retry.

    Cure: Catch TimeoutError in the handler, or give `ctx.wait_event` a longer `timeout`.
    """

    code = "wait_timeout"


class DatabaseUnavailable(LanewayError):
    """PostgreSQL cannot be reached, or refuses to serve.

    Cure: Check the address and the server, then run `laneway doctor`. Workers and servers wait
    and continue by themselves.
    """

    code = "database_unavailable"


class SchemaMismatch(DatabaseUnavailable):
    """The schema is missing, older or newer than this code can use.

    Cure: Run `laneway db migrate` of the newest version in use, or install a version that fits
    the schema.
    """

    code = "schema_mismatch"


class UnsuitableDatabase(DatabaseUnavailable):
    """The database or role is set up so that no retry can help; `cure` says what to change.

    Cure: Do what the message says after the colon; `laneway doctor` repeats it.
    """

    code = "unsuitable_database"

    def __init__(self, message: str, cure: str) -> None:
        super().__init__(f"{message}: {cure}")
        self.message = message
        self.cure = cure


class MissingRight(UnsuitableDatabase):
    """The database role lacks a right; `cure` names the command that grants it.

    `roles`: the Laneway roles with that right, the smallest last.

    Cure: Run the SQL of the `laneway db grants` command in the message, as the owner of the
    schema.
    """

    def __init__(self, message: str, cure: str, roles: tuple[str, ...] = ()) -> None:
        super().__init__(message, cure)
        self.roles = roles


class LoginRefused(UnsuitableDatabase):
    """PostgreSQL refuses the login: wrong password, no such role, or no such database.

    Cure: Correct user, password or database name in `LANEWAY_DATABASE_URL`.
    """


class UnreadableValue(LanewayError):
    """The database holds a value that this code cannot read.

    Cure: Correct the row that the message names, which SQL outside of Laneway wrote, or use the
    newest version of Laneway.
    """

    code = "unreadable_value"


class Unauthenticated(LanewayError):
    """The credentials are missing or invalid.

    Cure: Send a valid token; `laneway tokens create` makes one. A browser logs in again.
    """

    code = "unauthenticated"


class Forbidden(LanewayError):
    """The principal may not do this; names the permission.

    Cure: Ask an administrator for a role with the permission in the message: `laneway roles
    grant`.
    """

    code = "forbidden"


class RateLimited(LanewayError):
    """Too many requests; try again after `retry_after` seconds.

    Cure: Wait for `retry_after` seconds (`Retry-After` over HTTP), then send the request again.
    """

    code = "rate_limited"

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class QuotaExceeded(RateLimited):
    """More jobs would wait, or events be kept, than grants allow; `bound` and `limit` say which.

    Cure: Wait until jobs of the principal have started or its events have expired, or let an
    administrator raise the bound of its grant.
    """

    code = "quota_exceeded"

    def __init__(
        self,
        message: str,
        retry_after: float = 1.0,
        *,
        bound: str | None = None,
        limit: int | None = None,
    ) -> None:
        super().__init__(message, retry_after)
        self.bound = bound
        self.limit = limit


class ServerError(LanewayError):
    """The server's response could not be used.

    Cure: Check that the address leads to a Laneway server of a similar version, and read the
    server's log.
    """

    code = "server_error"


class ServerUnreachable(ServerError):
    """The server cannot be reached, or refuses to serve for now.

    Cure: Check address, network and TLS; `GET /readyz` says whether the server is ready. Then
    try again.
    """

    code = "server_unreachable"


class NeedsDatabase(LanewayError):
    """The verb needs a database connection, and this process has none.

    Cure: Do it in a process with `LANEWAY_DATABASE_URL`; a remote worker has no database.
    """

    code = "needs_database"


class ConfigError(LanewayError):
    """A setting is wrong.

    Cure: Correct the setting or the handler's option that the message names.
    """

    code = "config"


class MissingExtra(ConfigError, ImportError):
    """A package that only some features need is not installed; says how to install it.

    Cure: Run the `pip install` command of the message.
    """

    code = "missing_extra"
