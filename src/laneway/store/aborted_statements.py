"""Errors of statements that PostgreSQL aborted, without the import of the driver."""

from laneway.errors import DatabaseUnavailable


class StatementAborted(DatabaseUnavailable):
    """PostgreSQL aborted the statement, which stored nothing; the connection still works."""


class StatementTimeout(StatementAborted):
    """A statement waited too long for a lock, or took too long."""
