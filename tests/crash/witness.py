"""Watches a database from inside, by triggers, and at its doors, by taps; reads back what it saw.

A tap stands where a function of Laneway stood, calls it, and writes down which attempt was named
and what was answered. Nothing of Laneway knows about either.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

from laneway.testing.history import Event, Final, FinalJob

_SQL = Path(__file__).with_name("witness.sql")
_REPORTED = """(select * from unnest(p_seqs, p_attempts)
                union select * from unnest(p_log_seqs, p_log_attempts)) as g (seq, attempt)"""
# Function → what its writes are called, and which attempts they name.
_TAPS = {
    "settle": ("g.verdict", "unnest(p_seqs, p_attempts, p_verdicts) as g (seq, attempt, verdict)"),
    "heartbeat": ("'heartbeat'", "unnest(p_seqs, p_attempts) as g (seq, attempt)"),
    "report": ("'report'", _REPORTED),
}

Conn = psycopg.Connection[tuple[Any, ...]]


def install(conn: Conn) -> None:
    """Starts watching a migrated database."""
    conn.execute(_SQL.read_bytes())
    for function in _TAPS:
        _tap(conn, function)


def _tap(conn: Conn, function: str) -> None:
    row = conn.execute(
        "select pg_get_function_identity_arguments(oid), pg_get_function_arguments(oid),"
        " pg_get_function_result(oid), proargnames[1:pronargs]"
        " from pg_proc where oid = ('laneway.' || %s)::regproc",
        [function],
    ).fetchone()
    assert row is not None
    identity, arguments, result, names = row
    verb, given = _TAPS[function]
    conn.execute(
        f"alter function laneway.{function}({identity}) rename to {function}_behind".encode()
    )
    conn.execute(
        f"""
        create function laneway.{function}({arguments}) returns {result} language plpgsql as $$
        #variable_conflict use_column
        begin
            return query
            with answers as materialized (
                select * from laneway.{function}_behind({", ".join(names)})
            ), told as (
                insert into crash.seen (what, seq, attempt, more)
                select 'write', g.seq, g.attempt,
                       jsonb_build_object('verb', {verb}, 'answer', coalesce(a.answer, 'accepted'))
                  from {given} left join answers a on a.seq = g.seq and a.attempt = g.attempt
            )
            select * from answers;
        end $$
        """.encode()
    )


def read(conn: Conn) -> list[Event]:
    """All that it saw, with ids of jobs in place of their numbers."""
    rows = conn.execute(
        "select s.what, j.id::text, s.attempt, extract(epoch from s.at)::float8, s.n,"
        " s.tx::text::bigint, s.by, s.more"
        " from crash.seen s left join laneway.jobs j on j.seq = s.seq order by s.n"
    )
    return [Event(*row) for row in rows]


def read_final(conn: Conn) -> Final:
    """The tables as they are now. A job in several places at once is in no state."""
    rows = conn.execute(
        """
        select j.id::text, j.payload ->> 'op',
               case when (o.seq is not null)::int + (l.seq is not null)::int
                         + (w.seq is not null)::int + (d.seq is not null)::int <> 1 then null
                    when o.seq is not null then o.status
                    when l.seq is not null then 'running' else 'approved' end,
               coalesce(o.attempt, l.attempt, w.attempt, d.attempt, 0),
               coalesce(o.retries, l.retries, w.retries, d.retries, 0),
               j.max_retries, o.result, o.error
          from laneway.jobs j
          left join laneway.outcome o on o.seq = j.seq
          left join laneway.lease l on l.seq = j.seq
          left join laneway.ready w on w.seq = j.seq
          left join laneway.delayed d on d.seq = j.seq
        """
    )
    jobs = {row[0]: FinalJob(*row) for row in rows}
    lapsed, slots = conn.execute(
        "select (select count(*) from laneway.lease where lease_until < clock_timestamp()),"
        " (select coalesce(sum(running), 0) from laneway.slot_usage)"
    ).fetchone() or (0, 0)
    return Final(jobs, lapsed, slots)
