"""The address of a DSN's PostgreSQL: a Unix socket, or a host and port."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from psycopg.conninfo import conninfo_to_dict

from laneway.testing.proxy import Proxy


def address(dsn: str) -> tuple[str, int | None]:
    """The address of the server, in the form that a proxy takes."""
    given = conninfo_to_dict(dsn)
    host, port = str(given.get("host") or "localhost"), int(given.get("port") or 5432)
    if host.startswith("/"):
        return str(Path(host, f".s.PGSQL.{port}")), None
    return host, port


def through(proxy: Proxy, dsn: str) -> str:
    """The DSN of the same database through the proxy."""
    parts = urlsplit(dsn)
    place = f"{parts.username}:{parts.password}@{proxy.host}:{proxy.port}"
    return urlunsplit(parts._replace(netloc=place, query=""))
