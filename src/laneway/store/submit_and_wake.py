"""A submit and its wake-up in one message to the server, as two transactions.

The server notifies workers right after the commit of the submit, without a round trip in between.
The submit does not take NOTIFY's lock, which the whole server shares: only the second transaction
does, and it does not wait for the disk.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final
from uuid import UUID
from weakref import WeakSet
from zlib import crc32

import psycopg
from psycopg import errors as pg
from psycopg.abc import PQGen
from psycopg.generators import fetch, send
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from laneway.domain.approval import analysis_of
from laneway.domain.job import NewJob
from laneway.store import jobs
from laneway.store.arrays import array_of_texts
from laneway.store.database import AsyncConn
from laneway.store.driver_errors import field_of, translated
from laneway.store.jobs import SubmitResult
from laneway.store.notify import wake_message
from laneway.store.statement import Statement, nothing, one_row

_PARAMETER: Final = re.compile(r"%\((\w+)\)s")
# After so many empty results in a row, no result is due any more.
_NONE_DUE: Final = 3

# Connections whose sessions have prepared both statements.
_prepared: WeakSet[AsyncConn] = WeakSet()


@cache
def _numbered(name: str, text: str) -> tuple[bytes, bytes, tuple[str, ...]]:
    """The name to prepare it by, the statement with $1, $2 and so on, and its parameters' names."""
    names = tuple(dict.fromkeys(_PARAMETER.findall(text)))
    places = {name: f"${place}" for place, name in enumerate(names, 1)}
    numbered = _PARAMETER.sub(lambda found: places[found[1]], text).encode()
    # A session that other versions share, behind a pooler, may hold another text under this name.
    return f"{name} {crc32(numbered):08x}".encode(), numbered, names


def _as_text(value: object) -> bytes | None:
    """A parameter in PostgreSQL's text format."""
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        value = array_of_texts([_plain(one) for one in value])
    encoded = _plain(value).encode()
    if b"\0" in encoded:
        raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
    return encoded


def _plain(value: object) -> str:
    """The value itself as text; `str` of an enum or another subclass may be its name."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return int.__repr__(value)
    return str(value)


def submit_and_note(job: NewJob) -> Statement[SubmitResult]:
    """Submits, and leaves the message that wakes its workers in the session."""
    statement = jobs.submit(job)
    wakes = {
        "wake_ready": wake_message({job.job_type}),
        "wake_pending": wake_message({analysis_of(job.job_type)}),
    }
    # The last column is the message.
    decode = one_row(lambda *row: SubmitResult(*row[:3]))
    return Statement("jobs/submit_and_note", decode, {**statement.params, **wakes})


def wake_noted() -> Statement[None]:
    """Sends the message that the submit before has left, if any."""
    return Statement("control/wake_noted", nothing)


class SubmitAndWake:
    """Sends both: `submit` returns when the job is stored, `finish` when workers are notified.

    The submit leaves its wake-up in a setting of the session, which the second statement reads. So
    a refused submit, a duplicate or a job that waits for an approval wakes no worker.
    """

    def __init__(self, conn: AsyncConn) -> None:
        self.conn = conn

    async def submit(self, job: NewJob) -> SubmitResult | None:
        """Submits, and has the wake-up sent after it; then call `finish`.

        Returns None if nothing was stored, because other statements were prepared than expected.
        If it raises, both have ended.
        """
        noted, sent = submit_and_note(job), wake_noted()
        with translated(field_of(noted.params), self.conn, noted.name):
            try:
                row = await self.conn.wait(self._start((noted, sent)))
            except pg.InvalidSqlStatementName:
                _prepared.discard(self.conn)
                return None
            except pg.DuplicatePreparedStatement:
                # A submit that was refused has prepared them.
                _prepared.add(self.conn)
                return None
        _prepared.add(self.conn)
        return SubmitResult(UUID(row[0]), row[1], row[2] == "t")

    async def finish(self) -> None:
        """Waits until the wake-up is sent."""
        with translated():
            await self.conn.wait(self._end())

    def _start(self, statements: Sequence[Statement[Any]]) -> PQGen[list[str]]:
        pgconn = self.conn.pgconn
        bound = [
            (prepared, text, [_as_text(statement.params[name]) for name in names])
            for statement in statements
            for prepared, text, names in (_numbered(statement.name, statement.text),)
        ]
        pgconn.enter_pipeline_mode()
        for name, text, values in bound:
            if self.conn not in _prepared:
                pgconn.send_prepare(name, text)
            pgconn.send_query_prepared(name, values)
            # The end of a transaction: an error in one does not stop the other.
            pgconn.pipeline_sync()
        yield from send(pgconn)
        try:
            result = yield from _result_of_transaction(pgconn)
        except psycopg.Error:
            yield from self._end_after_error()
            raise
        return [(result.get_value(0, n) or b"").decode() for n in range(result.nfields)]

    def _end_after_error(self) -> PQGen[None]:
        # Otherwise this error would hide the first one. The pool closes a connection that is
        # still busy.
        with contextlib.suppress(psycopg.Error):
            yield from self._end()

    def _end(self) -> PQGen[None]:
        pgconn = self.conn.pgconn
        try:
            yield from _result_of_transaction(pgconn)
        finally:
            pgconn.exit_pipeline_mode()


def _result_of_transaction(pgconn: PGconn) -> PQGen[PGresult]:
    """The last result of the transaction that ends first, once it has ended."""
    last: PGresult | None = None
    error: psycopg.Error | None = None
    empty = 0
    while empty < _NONE_DUE:
        result = yield from fetch(pgconn)
        if result is None:
            empty += 1
            continue
        empty = 0
        if result.status == ExecStatus.PIPELINE_SYNC:
            break
        if result.status == ExecStatus.FATAL_ERROR:
            error = error or pg.error_from_result(result)
        last = result
    if error is not None:
        raise error
    if last is None or empty:
        raise psycopg.OperationalError("the connection was lost")
    return last
