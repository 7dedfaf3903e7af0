"""The API in process, and the command line."""

from tests.api.conftest import app, ask, database, people
from tests.cli.conftest import run

__all__ = ["app", "ask", "database", "people", "run"]
