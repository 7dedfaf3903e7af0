"""The API in process, and the command line."""

from tests.api.conftest import app, ask, conn, database, factory, people
from tests.cli.conftest import run

__all__ = ["app", "ask", "conn", "database", "factory", "people", "run"]
