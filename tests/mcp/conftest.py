"""The API in process, and the command line."""

from tests.api.conftest import acts, app, conn, database, factory, people
from tests.cli.conftest import program, run

__all__ = ["acts", "app", "conn", "database", "factory", "people", "program", "run"]
