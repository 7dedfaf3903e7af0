"""Every error Laneway raises on purpose.

LanewayError
├── InvalidInput            what was given breaks a rule; names the field and the rule
├── NotFound                no such job, lane, worker or job type
├── Refused                 the state found does not allow the verb
│   ├── StaleAttempt        a write named an attempt that is not the one running
│   └── JobFailed           the awaited job ended in failed or cancelled
├── DatabaseUnavailable     PostgreSQL cannot be reached, or refuses to serve
│   ├── SchemaMismatch      the schema is missing, older or newer than this code can use
│   └── UnsuitableDatabase  the database or role is set up so that no retry can help
│       └── MissingRight    the database role lacks a right
├── UnreadableValue         the database holds a value that this code cannot read
├── Unauthenticated         nobody is known by what was shown, or nothing was
├── Forbidden               the principal may not do this
├── RateLimited             too much in too short a time; says when there may be more
│   └── QuotaExceeded       more would wait than the grants of the principal allow
├── ServerError             a server answered what a client cannot go on with
│   └── ServerUnreachable   a server cannot be reached, or refuses to serve for now
├── NeedsDatabase           the verb works only where a database connection is at hand
└── ConfigError             a setting is wrong; names the setting

`code` is stable and shared by every door (HTTP problem, gRPC status, command line).
"""

from __future__ import annotations


class LanewayError(Exception):
    """Something Laneway refuses or cannot do."""

    code = "error"


class InvalidInput(LanewayError):
    """What was given breaks a rule."""

    code = "invalid_input"

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule


class NotFound(LanewayError):
    """No such object; of a lane, limit, schedule, role or principal with `kind` and `name`."""

    code = "not_found"

    def __init__(self, message: str = "", *, kind: str = "", name: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.name = name


class Refused(LanewayError):
    """The state found does not allow the verb."""

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
    """The database role lacks a right; `cure` names the command that grants it."""


class UnreadableValue(LanewayError):
    """The database holds a value that this code cannot read."""

    code = "unreadable_value"


class Unauthenticated(LanewayError):
    """Nobody is known by what was shown, or nothing was."""

    code = "unauthenticated"


class Forbidden(LanewayError):
    """The principal may not do this; names the permission."""

    code = "forbidden"


class RateLimited(LanewayError):
    """Too much in too short a time; after `retry_after` seconds there may be more."""

    code = "rate_limited"

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class QuotaExceeded(RateLimited):
    """More would wait than the grants of the principal allow: which bound, and what it is."""

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
    """A server answered what a client cannot go on with."""

    code = "server_error"


class ServerUnreachable(ServerError):
    """A server cannot be reached, or refuses to serve for now."""

    code = "server_unreachable"


class NeedsDatabase(LanewayError):
    """Works only where a database connection is at hand."""

    code = "needs_database"


class ConfigError(LanewayError):
    """A setting is wrong."""

    code = "config"
