"""Tells logins that every host refuses for good from those worth a retry."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

# PostgreSQL's reasons to refuse a login that no retry changes. The driver gives no SQLSTATE for a
# failed login, so they are read from the text; one in another language is retried.
_REFUSED: Final = re.compile(
    r"password authentication failed for user|no password supplied|no pg_hba\.conf entry"
    r'|role "[^\n]*" (does not exist|is not permitted to log in)'
    r'|database "[^\n]*" does not exist'
    r"|permission denied for database"
)
# One for each address that was tried.
_TRY: Final = re.compile(r"connection to server.*?(?=connection to server|\Z)", re.DOTALL)
# How the driver lists the addresses, where there were several.
_TRIED: Final = re.compile(r"^- (host: .*?)(?:, hostaddr: \S+)?: ", re.MULTILINE)


class RefusedLogin(psycopg.OperationalError):
    """Every host refused the login for a reason that stays."""


@contextmanager
def logging_in(dsn: str) -> Iterator[None]:
    """Raise RefusedLogin where each host of the DSN refuses the login for good."""
    try:
        yield
    except psycopg.OperationalError as error:
        text = str(error)
        tries = _TRY.findall(text)
        is_refused = bool(tries) and all(_REFUSED.search(one) for one in tries)
        # The driver does not mention a host whose name it cannot resolve for now.
        if is_refused and len(set(_TRIED.findall(text)) or {""}) >= _count_hosts(dsn):
            raise RefusedLogin(text) from error
        raise


def _count_hosts(dsn: str) -> int:
    given = conninfo_to_dict(dsn)

    def listed(name: str, variable: str) -> list[str]:
        return str(given.get(name) or os.environ.get(variable, "")).split(",")

    hosts = listed("host", "PGHOST")
    if len(hosts) == 1:
        hosts = listed("hostaddr", "PGHOSTADDR")
    ports = listed("port", "PGPORT")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    return len(set(zip(hosts, ports, strict=False)))
