"""The API in process, and the command line."""

from tests.api.conftest import app, audit_entries, conn, database, factory, people
from tests.cli.conftest import program, run

__all__ = [
    "app",
    "audit_entries",
    "conn",
    "database",
    "factory",
    "people",
    "program",
    "run",
]
