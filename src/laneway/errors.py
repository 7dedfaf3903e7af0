"""Every error Laneway raises on purpose.

LanewayError
├── InvalidInput            an input breaks a rule; names the field and the rule
│   └── InvalidResult       a result, step result or checkpoint cannot be stored as JSON
├── NotFound                no such job, lane, worker or job type
├── Refused                 the current state does not allow the verb
│   ├── StaleAttempt        a write named an attempt that is not the one running
│   └── JobFailed           the awaited job ended in failed or cancelled
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

`code` is stable and the same in HTTP problems, gRPC statuses and the command line.
"""

from __future__ import annotations


class LanewayError(Exception):
    """Something Laneway refuses or cannot do."""

    code = "error"


class InvalidInput(LanewayError):
    """An input breaks a rule."""

    code = "invalid_input"

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule


class InvalidResult(InvalidInput):
    """A result of a handler or step, or a checkpoint, that cannot be stored as JSON.

    A handler that raises it fails its job without a retry: the next attempt would end alike.
    """


class NotFound(LanewayError):
    """No such object; lanes, limits, schedules, roles and principals set `kind` and `name`."""

    code = "not_found"

    def __init__(self, message: str = "", *, kind: str = "", name: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.name = name


class Refused(LanewayError):
    """The current state does not allow the verb."""

    code = "refused"


class StaleAttempt(Refused):
    """The attempt is no longer the one running: its lease lapsed or the job ended."""

    code = "stale_attempt"


class JobFailed(Refused):
    """The awaited job ended in failed or cancelled."""

    code = "job_failed"


class DatabaseUnavailable(LanewayError):
    """PostgreSQL cannot be reached, or refuses to serve."""

    code = "database_unavailable"


class SchemaMismatch(DatabaseUnavailable):
    """The schema is missing, older or newer than this code can use."""

    code = "schema_mismatch"


class UnsuitableDatabase(DatabaseUnavailable):
    """The database or role is set up so that no retry can help; `cure` says what to change."""

    code = "unsuitable_database"

    def __init__(self, message: str, cure: str) -> None:
        super().__init__(f"{message}: {cure}")
        self.message = message
        self.cure = cure


class MissingRight(UnsuitableDatabase):
    """The database role lacks a right; `cure` names the command that grants it.

    `roles`: the Laneway roles with that right, the smallest last.
    """

    def __init__(self, message: str, cure: str, roles: tuple[str, ...] = ()) -> None:
        super().__init__(message, cure)
        self.roles = roles


class LoginRefused(UnsuitableDatabase):
    """PostgreSQL refuses the login: wrong password, no such role, or no such database."""


class UnreadableValue(LanewayError):
    """The database holds a value that this code cannot read."""

    code = "unreadable_value"


class Unauthenticated(LanewayError):
    """The credentials are missing or invalid."""

    code = "unauthenticated"


class Forbidden(LanewayError):
    """The principal may not do this; names the permission."""

    code = "forbidden"


class RateLimited(LanewayError):
    """Too many requests; try again after `retry_after` seconds."""

    code = "rate_limited"

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class QuotaExceeded(RateLimited):
    """More jobs would wait than the principal's grants allow; `bound` and `limit` say which."""

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
    """The server's response could not be used."""

    code = "server_error"


class ServerUnreachable(ServerError):
    """The server cannot be reached, or refuses to serve for now."""

    code = "server_unreachable"


class NeedsDatabase(LanewayError):
    """The verb needs a database connection, and this process has none."""

    code = "needs_database"


class ConfigError(LanewayError):
    """A setting is wrong."""

    code = "config"


class MissingExtra(ConfigError, ImportError):
    """A package that only some features need is not installed; says how to install it."""

    code = "missing_extra"
