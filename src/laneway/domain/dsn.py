"""Connection strings of PostgreSQL as text: what is one, and how to show it."""

from __future__ import annotations

import re
from typing import Final

_HIDDEN: Final = "***"
_SECRETS: Final = "|".join(("password", "sslpassword", "oauth_client_secret"))
_QUERY_SECRET: Final = re.compile(rf"([?&](?:{_SECRETS})=)[^&#]*", re.IGNORECASE)
_KEYWORD_SECRET: Final = re.compile(
    rf"(\b(?:{_SECRETS})\s*=\s*)(?:'(?:[^'\\]|\\.)*'?|(?:\\.|[^\s\\])*)",
    re.IGNORECASE | re.DOTALL,
)
_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_DRIVER: Final = re.compile(r"(postgres(?:ql)?)\+[a-z0-9_]+://", re.IGNORECASE)


def redact_dsn(dsn: str) -> str:
    """The connection string with every password in it replaced by `***`."""
    scheme, _, rest = dsn.partition("://")
    if not _URL.match(dsn):
        return _KEYWORD_SECRET.sub(rf"\1{_HIDDEN}", dsn)
    rest = _QUERY_SECRET.sub(rf"\1{_HIDDEN}", rest)
    # The last @ of all: a password that forgot to escape its own @, / or ? must not show either.
    userinfo, at, host = rest.rpartition("@")
    if at and ":" in userinfo:
        rest = f"{userinfo.partition(':')[0]}:{_HIDDEN}@{host}"
    return f"{scheme}://{rest}"


def check_dsn(value: object) -> object:
    """A PostgreSQL URL or a libpq keyword string; a SQLAlchemy driver suffix is dropped."""
    if not isinstance(value, str):
        return value
    dsn = value.strip()
    if "\x00" in dsn:
        raise ValueError("must not hold a NUL character")
    if _URL.match(dsn):
        if _DRIVER.match(dsn):
            dsn = _DRIVER.sub(r"\1://", dsn, count=1)
        if not dsn.startswith(("postgresql://", "postgres://")):
            raise ValueError("must be a PostgreSQL URL (postgresql://…)")
    elif dsn and "=" not in dsn:
        raise ValueError("must be a PostgreSQL URL (postgresql://…) or key=value pairs")
    return dsn
