"""Grant a database role its rights, as `laneway db grants --apply` does without psql."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Final

import psycopg
from psycopg import errors as pg

from laneway.errors import InvalidInput, MissingRight
from laneway.observability.safe_logger import SafeLogger
from laneway.store.grants import grants
from laneway.store.migrate import PATIENCE_S, PAUSE_S, connected

log = SafeLogger("laneway")

CURE: Final = (
    "log in as the owner of the schema laneway, as its migration login or as a superuser to grant"
    " rights"
)
# PostgreSQL only warns about a right that the login cannot grant or revoke.
_NOT_DONE: Final = frozenset({"01006", "01007"})


def apply_grants(
    dsn: str,
    roles: Sequence[str],
    to: str,
    owner: str,
    *,
    keep: bool = False,
    patience_s: float = PATIENCE_S,
) -> None:
    """Grant all or nothing; tries up to `patience_s` to get its locks from other sessions."""
    script = grants(roles, to, owner, keep=keep).encode()
    deadline = time.monotonic() + patience_s
    with connected(dsn) as conn:
        not_done: list[str] = []
        conn.add_notice_handler(
            lambda notice: (
                not_done.append(notice.message_primary or "")
                if notice.sqlstate in _NOT_DONE
                else None
            )
        )
        while True:
            try:
                with conn.transaction():
                    conn.execute(script)
                    if not_done:
                        raise MissingRight(not_done[0], CURE)
            except pg.LockNotAvailable:
                pause = random.uniform(*PAUSE_S)
                if time.monotonic() + pause > deadline:
                    raise
                log.warning("the grants to %s wait for a lock of another session", to)
                time.sleep(pause)
            except pg.UndefinedObject as error:
                raise InvalidInput(
                    "to",
                    f"{_primary(error)}: create it first (create role NAME login password '…')",
                ) from error
            except pg.InsufficientPrivilege as error:
                raise MissingRight(_primary(error), CURE) from error
            else:
                return


def _primary(error: psycopg.Error) -> str:
    return (error.diag.message_primary or str(error)).strip()
