"""Detection of logins that every host refuses permanently, as opposed to retryable errors."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

# Permanent reasons of PostgreSQL to refuse a login. The driver gives no SQLSTATE for a failed
# login, so they are matched in the text; a message in another language is retried.
_REFUSED: Final = re.compile(
    r"password authentication failed for user|no password supplied|no pg_hba\.conf entry"
    r'|role "[^\n]*" (does not exist|is not permitted to log in)'
    r'|database "[^\n]*" does not exist'
    r"|permission denied for database"
)
# One match per address that was tried.
_TRY: Final = re.compile(r"connection to server.*?(?=connection to server|\Z)", re.DOTALL)
# The driver's list of several addresses.
_TRIED: Final = re.compile(r"^- (host: .*?)(?:, hostaddr: \S+)?: ", re.MULTILINE)


class RefusedLogin(psycopg.OperationalError):
    """Every host refused the login permanently."""


@contextmanager
def logging_in(dsn: str) -> Iterator[None]:
    """Raises RefusedLogin if each host of the DSN refuses the login permanently."""
    try:
        yield
    except psycopg.OperationalError as error:
        text = str(error)
        tries = _TRY.findall(text)
        is_refused = bool(tries) and all(_REFUSED.search(text) for text in tries)
        # The driver omits hosts whose name it cannot resolve at the moment.
        if is_refused and len(set(_TRIED.findall(text)) or {""}) >= _count_hosts(dsn):
            raise RefusedLogin(text) from error
        raise


def _count_hosts(dsn: str) -> int:
    parameters = conninfo_to_dict(dsn)

    def listed(name: str, variable: str) -> list[str]:
        return str(parameters.get(name) or os.environ.get(variable, "")).split(",")

    hosts = listed("host", "PGHOST")
    if len(hosts) == 1:
        hosts = listed("hostaddr", "PGHOSTADDR")
    ports = listed("port", "PGPORT")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    return len(set(zip(hosts, ports, strict=False)))
