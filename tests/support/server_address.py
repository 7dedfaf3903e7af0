"""Where the PostgreSQL of a DSN listens: at a socket of this machine, or in the network."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from psycopg.conninfo import conninfo_to_dict

from laneway.testing.proxy import Proxy


def address(dsn: str) -> tuple[str, int | None]:
    """The place of the server, as a proxy takes it."""
    given = conninfo_to_dict(dsn)
    host, port = str(given.get("host") or "localhost"), int(given.get("port") or 5432)
    if host.startswith("/"):
        return str(Path(host, f".s.PGSQL.{port}")), None
    return host, port


def through(proxy: Proxy, dsn: str) -> str:
    """The same database by way of the proxy."""
    parts = urlsplit(dsn)
    place = f"{parts.username}:{parts.password}@{proxy.host}:{proxy.port}"
    return urlunsplit(parts._replace(netloc=place, query=""))
