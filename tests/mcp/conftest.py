"""The API in process, and the command line."""

from tests.api.conftest import acts, app, conn, database, people, scene
from tests.cli.conftest import program, run

__all__ = ["acts", "app", "conn", "database", "people", "program", "run", "scene"]
