"""Record what a database does, with triggers and with wrapped functions; read the records back.

A wrapper replaces a function of Laneway, calls it, and records the named attempt and the result.
Laneway is not aware of either.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

from laneway.testing.history import Final, FinalJob, HistoryEvent

_SQL = Path(__file__).with_suffix(".sql")
_REPORTED = """(select * from unnest(p_seqs, p_attempts)
                union select * from unnest(p_log_seqs, p_log_attempts)) as g (seq, attempt)"""
# Function → the name of its write, and the attempts in its arguments.
_TAPS = {
    "settle": ("g.verdict", "unnest(p_seqs, p_attempts, p_verdicts) as g (seq, attempt, verdict)"),
    "heartbeat": ("'heartbeat'", "unnest(p_seqs, p_attempts) as g (seq, attempt)"),
    "report": ("'report'", _REPORTED),
}

# Function → its result, and what to record.
_RESULTS = {
    "finish_in_transaction": (
        "v_answer",
        """select 'write', p_seq, p_attempt, jsonb_build_object('verb', 'finish apart',
                  'answer', case v_answer when 'finished' then 'accepted' else v_answer end)""",
    ),
    "fire": (
        "answer, taken, job_type",
        """select 'fire', null, null, jsonb_build_object('schedule', p_name, 'holder', p_holder,
                  'epoch', p_epoch, 'answer', answer, 'taken', taken)""",
    ),
}

Conn = psycopg.Connection[tuple[Any, ...]]


def install(conn: Conn) -> None:
    """Start recording in a migrated database."""
    conn.execute(_SQL.read_bytes())
    for function in _TAPS:
        _wrap_write(conn, function)
    for function in _RESULTS:
        _wrap_result(conn, function)


def _rename(conn: Conn, function: str) -> tuple[str, str, str]:
    """Rename a function; return its arguments, its result and its new name."""
    row = conn.execute(
        "select pg_get_function_identity_arguments(oid), pg_get_function_arguments(oid),"
        " pg_get_function_result(oid), proargnames[1:pronargs]"
        " from pg_proc where oid = ('laneway.' || %s)::regproc",
        [function],
    ).fetchone()
    assert row is not None
    identity, arguments, result, names = row
    conn.execute(
        f"alter function laneway.{function}({identity}) rename to {function}_behind".encode()
    )
    return arguments, result, f"laneway.{function}_behind({', '.join(names)})"


def _wrap_result(conn: Conn, function: str) -> None:
    arguments, result, call = _rename(conn, function)
    answers, recorded = _RESULTS[function]
    own = answers == "v_answer"
    conn.execute(
        f"""
        create function laneway.{function}({arguments}) returns {result} language plpgsql as $$
        {"declare v_answer text;" if own else ""}
        begin
            select * into {answers} from {call};
            insert into crash.seen (what, seq, attempt, more) {recorded};
            {"return v_answer;" if own else ""}
        end $$
        """.encode()
    )


def _wrap_write(conn: Conn, function: str) -> None:
    arguments, result, call = _rename(conn, function)
    verb, given = _TAPS[function]
    conn.execute(
        f"""
        create function laneway.{function}({arguments}) returns {result} language plpgsql as $$
        #variable_conflict use_column
        begin
            return query
            with answers as materialized (
                select * from {call}
            ), recorded as (
                insert into crash.seen (what, seq, attempt, more)
                select 'write', g.seq, g.attempt,
                       jsonb_build_object('verb', {verb}, 'answer', coalesce(a.answer, 'accepted'))
                  from {given} left join answers a on a.seq = g.seq and a.attempt = g.attempt
            )
            select * from answers;
        end $$
        """.encode()
    )


def read(conn: Conn) -> list[HistoryEvent]:
    """All recorded events, with ids of jobs instead of their numbers."""
    rows = conn.execute(
        "select s.what, j.id::text, s.attempt, extract(epoch from s.at)::float8, s.n,"
        " s.tx::text::bigint, s.by, s.more"
        " from crash.seen s left join laneway.jobs j on j.seq = s.seq order by s.n"
    )
    return [HistoryEvent(*row) for row in rows]


def read_final(conn: Conn) -> Final:
    """The current state of all jobs. A job in several tables at once has no state."""
    rows = conn.execute(
        r"""
        select j.id::text,
               coalesce(j.payload ->> 'op', concat(
                   'schedule:', t.schedule, ' ', extract(epoch from t.slot)::float8)),
               case when (o.seq is not null)::int + (l.seq is not null)::int
                         + (w.seq is not null)::int
                         + (d.seq is not null)::int + (k.seq is not null)::int
                         + (a.seq is not null)::int + (q.seq is not null)::int <> 1 then null
                    when o.seq is not null then o.status
                    when a.seq is not null then 'awaiting_approval'
                    when q.seq is not null then 'waiting'
                    when coalesce(l.job_type, w.job_type, d.job_type) like E'\x01%' then 'pending'
                    when l.seq is not null then 'running' else 'approved' end,
               coalesce(o.attempt, l.attempt, w.attempt, d.attempt, k.attempt, a.attempt, q.attempt,
                        0),
               coalesce(o.retries, l.retries, w.retries, d.retries, k.retries, q.retries, 0),
               j.max_retries, o.result, o.error
          from laneway.jobs j
          left join laneway.outcome o on o.seq = j.seq
          left join laneway.lease l on l.seq = j.seq
          left join laneway.ready w on w.seq = j.seq
          left join laneway.delayed d on d.seq = j.seq
          left join laneway.key_waiters k on k.seq = j.seq
          left join laneway.awaiting a on a.seq = j.seq
          left join laneway.waiting q on q.seq = j.seq
          left join laneway.schedule_slots t on t.job_id = j.id
        """
    )
    jobs = {row[0]: FinalJob(*row) for row in rows}
    left = conn.execute(
        "select (select count(*) from laneway.lease where lease_until < clock_timestamp()),"
        " (select coalesce(sum(running), 0) from laneway.slot_usage),"
        " (select coalesce(sum(running), 0) from laneway.limit_usage),"
        " (select count(*) from laneway.key_holders) + (select count(*) from laneway.key_waiters)"
    ).fetchone()
    return Final(jobs, *(left or ()))
