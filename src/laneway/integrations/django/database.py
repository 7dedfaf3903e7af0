"""Django's database as a DSN for Laneway."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured
from django.db import connections


def dsn_of(alias: str) -> str:
    """The DSN of a database of the settings; during tests, that of its test database."""
    connection = connections[alias]
    if connection.vendor != "postgresql":
        raise ImproperlyConfigured(
            f"Laneway needs PostgreSQL, but DATABASES[{alias!r}] is {connection.vendor}: set"
            ' "DATABASE_URL" in the OPTIONS of the backend'
        )
    # Others, such as the cursor class, are objects of the driver.
    params = connection.get_connection_params().items()
    given = {name: value for name, value in params if type(value) in (str, int)}
    del given["client_encoding"]
    given.pop("prepare_threshold", None)
    if role := connection.settings_dict["OPTIONS"].get("assume_role"):
        # Django changes to it after it has connected.
        escaped = str(role).replace("\\", "\\\\").replace(" ", "\\ ")
        given["options"] = f"{given.get('options', '')} -c role={escaped}".strip()
    return " ".join(f"{name}={_quoted(str(value))}" for name, value in given.items())


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
