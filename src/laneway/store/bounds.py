"""Timeouts that make the server drop silent clients, so that their locks are released.

A session that waits for its client keeps every lock of its transaction. TCP alone gives up after
minutes, and only where the client's machine is gone.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus

if TYPE_CHECKING:
    from laneway.config.settings import Settings

# Settings for the server's side of a connection: it probes an idle client after 2 s and drops a
# client that acknowledges nothing for 4 s, also in the middle of a result.
DEAD_CLIENT: Final[Mapping[str, str]] = {
    "tcp_keepalives_idle": "2",
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "2",
    "tcp_user_timeout": "4000",
}
_CAN_ROLL_BACK: Final = (TransactionStatus.INTRANS, TransactionStatus.INERROR)


def session_bounds(settings: Settings) -> dict[str, str]:
    """Settings for the start of a session without a pooler, which would ignore them."""
    return {**DEAD_CLIENT, **_transaction_bounds(settings)}


def _transaction_bounds(settings: Settings) -> dict[str, str]:
    return {
        "statement_timeout": _ms(settings.statement_timeout),
        "idle_in_transaction_session_timeout": _ms(settings.idle_transaction_timeout),
    }


@asynccontextmanager
async def bounded_transaction(
    conn: AsyncConnection[Any], settings: Settings
) -> AsyncIterator[None]:
    """A transaction with timeouts set in its first message; a savepoint inside another transaction.

    The timeouts also hold behind poolers, which ignore or share the settings of a session.
    """
    if _status_of(conn) != TransactionStatus.IDLE:
        async with conn.transaction():
            yield
        return
    bounds = _transaction_bounds(settings)
    text = "; ".join(["begin", *(f"set local {name} = {value}" for name, value in bounds.items())])
    await conn.execute(text.encode(), prepare=False)
    try:
        yield
    except BaseException:
        if _status_of(conn) in _CAN_ROLL_BACK:
            # If this fails, the connection is closed and the server rolls back.
            with contextlib.suppress(psycopg.Error):
                await conn.execute("rollback", prepare=False)
        raise
    await conn.execute("commit", prepare=False)


def _status_of(conn: AsyncConnection[Any]) -> TransactionStatus:
    return conn.info.transaction_status


def _ms(seconds: float) -> str:
    # PostgreSQL reads 0 as no limit.
    return str(max(1, int(seconds * 1000)))
