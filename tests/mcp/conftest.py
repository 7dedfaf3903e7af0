"""The API in process, and the command line."""

from tests.api.conftest import app, audit_entries, database, people
from tests.cli.conftest import program, run

__all__ = [
    "app",
    "audit_entries",
    "database",
    "people",
    "program",
    "run",
]
