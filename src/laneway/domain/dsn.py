"""Connection strings of PostgreSQL, as settings take them."""

from __future__ import annotations

import re
from typing import Final

_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_DRIVER: Final = re.compile(r"(postgres(?:ql)?)\+[a-z0-9_]+://", re.IGNORECASE)


def check_dsn(value: object) -> object:
    """A PostgreSQL URL or a libpq keyword string; a SQLAlchemy driver suffix is dropped."""
    if not isinstance(value, str):
        return value
    dsn = value.strip()
    if "\x00" in dsn:
        raise ValueError("must not contain a NUL character")
    if _URL.match(dsn):
        if _DRIVER.match(dsn):
            dsn = _DRIVER.sub(r"\1://", dsn, count=1)
        if not dsn.startswith(("postgresql://", "postgres://")):
            raise ValueError("must be a PostgreSQL URL (postgresql://…)")
    elif dsn and "=" not in dsn:
        raise ValueError("must be a PostgreSQL URL (postgresql://…) or key=value pairs")
    return dsn
