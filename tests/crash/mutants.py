"""Variants of Laneway with one law removed, to show that the rows would notice.

A mutant wraps a function of the database and changes its arguments, so it does not depend on how
the function is written. Where only a change inside helps, it patches the text of the function.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from laneway.testing.recorder import Conn


@dataclass(frozen=True)
class Mutant:
    """A changed function of the database, the row that must notice, and the broken law."""

    name: str
    row: str
    law: str
    function: str = ""
    first: str = ""  # runs before the function
    instead: Mapping[str, str] = field(default_factory=dict)  # argument → its replacement
    # Function → texts in it and their replacements.
    patches: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    setup: str = ""  # runs once
    only: tuple[str, ...] = ()  # the kinds to run, of rows with kinds
    app: str = ""  # an application that removes the law from its worker process
    # Variables for workers and servers.
    environment: Mapping[str, str] = field(default_factory=dict)
    scale: float = 0.2

    def apply(self, conn: Conn) -> None:
        if self.setup:
            conn.execute(self.setup.encode())
        for function, texts in self.patches.items():
            source, *_ = _described(conn, function)
            conn.execute(_patched(function, source, texts).encode())
        if self.function:
            self._wrap(conn)

    def _wrap(self, conn: Conn) -> None:
        _, identity, arguments, result, names = _described(conn, self.function)
        name = f"laneway.{self.function}"
        conn.execute(f"alter function {name}({identity}) rename to {self.function}_sound".encode())
        given = ", ".join(self.instead.get(argument, argument) for argument in names)
        conn.execute(
            f"create function {name}({arguments}) returns {result} language sql volatile as $$"
            f" {self.first}{';' if self.first else ''}"
            f" select * from {name}_sound({given}) $$".encode()
        )


def _described(conn: Conn, function: str) -> tuple[Any, ...]:
    row = conn.execute(
        "select pg_get_functiondef(oid), pg_get_function_identity_arguments(oid),"
        " pg_get_function_arguments(oid), pg_get_function_result(oid), proargnames[1:pronargs]"
        " from pg_proc where oid = ('laneway.' || %s)::regproc",
        [function],
    ).fetchone()
    assert row is not None
    return row


def _patched(function: str, source: str, texts: tuple[tuple[str, str], ...]) -> str:
    for old, new in texts:
        if old not in source:
            raise LookupError(f"laneway.{function} has no {old!r} any more")
        source = source.replace(old, new, 1)
    return source


def _running(seqs: str, attempts: str, condition: str = "true") -> str:
    """Replace the named attempt with the one that runs."""
    return (
        "array(select case when l.seq is not null then l.attempt else g.attempt end"
        f" from unnest({seqs}, {attempts}) with ordinality g (seq, attempt, n)"
        f" left join laneway.lease l on l.seq = g.seq and {condition} order by g.n)"
    )


MUTANTS = (
    Mutant(
        "settle unfenced",
        "C2",
        "I5",
        "settle",
        instead={"p_attempts": _running("p_seqs", "p_attempts")},
        only=("complete",),
    ),
    Mutant(
        "release unfenced",
        "C2",
        "I5",
        "settle",
        instead={"p_attempts": _running("p_seqs", "p_attempts", "p_verdicts[g.n] = 'release'")},
        only=("release",),
    ),
    Mutant(
        "heartbeat unfenced",
        "C2",
        "I5",
        "heartbeat",
        instead={"p_attempts": _running("p_seqs", "p_attempts")},
        only=("heartbeat",),
    ),
    Mutant(
        "report unfenced",
        "C2",
        "I5",
        "report",
        instead={
            "p_attempts": _running("p_seqs", "p_attempts"),
            "p_log_attempts": _running("p_log_seqs", "p_log_attempts"),
        },
        only=("progress",),
    ),
    Mutant(
        "slots unlocked",
        "C1",
        "I9",
        patches={
            "claim": (
                (
                    "perform from laneway.worker_lanes l where l.name = p_lane for no key update;",
                    "",
                ),
                # A busy server pauses between count and claim in the same way.
                (
                    "v_room := least(v_room, v_free);",
                    "v_room := least(v_room, v_free); perform pg_sleep(0.05);",
                ),
            )
        },
    ),
    Mutant(
        "exhausted jobs not taken back",
        "C1",
        "I12",
        patches={
            "overdue_leases": (
                (
                    "where l.lease_until < p_now",
                    "where l.lease_until < p_now and l.retries < l.max_retries",
                ),
            )
        },
    ),
    Mutant(
        "taken back too early",
        "C1",
        "I6",
        "run_watchdog",
        instead={"p_now": "clock_timestamp() + interval '1.6 s'"},
    ),
    Mutant(
        "budget overdrawn",
        "C11",
        "I8",
        "settle",
        first="update laneway.lease set max_retries = max_retries + 1"
        " where seq = any (p_seqs) and max_retries = retries",
    ),
    Mutant(
        "cancel forgotten",
        "C1",
        "I11",
        "settle",
        first="update laneway.lease set cancel_requested_at = null where seq = any (p_seqs)",
        instead={"p_verdicts": "array_replace(p_verdicts, 'cancel', 'fail')"},
    ),
    Mutant(
        "leadership taken from a live leader",
        "C7",
        "I10",
        "take_leadership",
        first="update laneway.leader set holder = p_holder, epoch = epoch + 1"
        " where holder <> p_holder and random() < 0.3",
    ),
    Mutant(
        "slots of schedules not unique",
        "C6",
        "I10",
        # Two other checks stop a former leader before the key does.
        setup="alter table laneway.schedule_slots drop constraint schedule_slots_pkey",
        patches={
            "take_slot": (("on conflict (schedule, slot) do nothing", ""),),
            "fire": (
                ("if not found then return; end if;", ""),
                ("if p_from is distinct from", "if false and p_from is distinct from"),
            ),
        },
    ),
    Mutant(
        "former leaders fire",
        "C6",
        "C6",
        patches={"fire": (("if not found then return; end if;", ""),)},
    ),
    Mutant(
        "decided without a lock",
        "C16",
        "I14",
        patches={
            "decide": (
                (
                    "from laneway.awaiting w where w.seq = p_seq for update;",
                    "from laneway.awaiting w where w.seq = p_seq;",
                ),
            )
        },
    ),
    Mutant(
        "approved is not what runs",
        "C16",
        "I15",
        patches={
            "claim": (
                (
                    "where laneway.seal(j.payload, v.analysis) is distinct from v.seal",
                    "where false",
                ),
            )
        },
    ),
    Mutant(
        "approval is decided at submit alone",
        "C16",
        "I15",
        patches={"claim": (("and (t.approval <> 'never' or t.has_analysis)", "and false"),)},
    ),
    Mutant(
        "run before anyone approves",
        "C16",
        "I15",
        # The claim would send these jobs back for approval.
        patches={
            "claim": (("and (t.approval <> 'never' or t.has_analysis)", "and false"),),
            "apply_approval_policy": (
                (
                    (
                        "coalesce(v_type.approval, 'never') = 'never'"
                        " and (v_approval.asked in ('approval', 'both')) is not true"
                    ),
                    "true",
                ),
            ),
        },
    ),
    Mutant(
        "claims ignore limits",
        "C17",
        "I9",
        patches={
            "claim": (
                ("case when p.job_type = any (v_shut) then 0 else r.room end", "null::integer"),
            )
        },
    ),
    Mutant(
        "calls ignore limits",
        "C17",
        "I9",
        patches={"acquire": (("if v_short is not null then", "if false then"),)},
    ),
    Mutant(
        "who frees a limit takes it again",
        "C26",
        "C26",
        patches={
            "turn_capacity": (
                ("if v_others.higher > 0 then return 0;", "if true then return null;"),
            ),
            "wake_workers": (("if v_called is not null then", "if false then"),),
        },
    ),
    Mutant(
        "claims ignore key holders",
        "C17",
        "I9",
        patches={
            "claim": (
                (
                    "from unnest(v_second) k where k.concurrency_key is not null",
                    "from unnest(v_second) k where false",
                ),
            )
        },
    ),
    Mutant(
        "keys not handed on",
        "C17",
        "I12",
        patches={"release_resources": (("if p_of.keys is not null then", "if false then"),)},
    ),
    Mutant(
        "finish apart unfenced",
        "C18",
        "I5",
        patches={
            "finish_in_transaction": (
                (
                    "where l.seq = p_seq and l.attempt = p_attempt and l.cancel_requested_at",
                    "where l.seq = p_seq and l.cancel_requested_at",
                ),
            )
        },
        only=("stale",),
    ),
    Mutant(
        "what was finished apart not given back",
        "C18",
        "I9",
        "release_self_finished",
        instead={"p_limit": "0"},
        scale=0.1,
    ),
    Mutant(
        "events that become visible late are lost",
        "C19",
        "C19",
        patches={"events_between": (("z.xid = x.xid", "false"),)},
    ),
    Mutant(
        "who reconnects has lost its jobs",
        "C21",
        "C21",
        setup="""
        create function laneway.mutant_forget() returns trigger language plpgsql as $$
        begin
            perform from (
                select array_agg(l.seq) as seqs, array_agg(l.attempt) as attempts,
                       array_agg('lost'::text) as verdicts,
                       array_agg('{"type": "WorkerLost", "message": "reconnected"}'::text) as errors
                  from laneway.lease l where l.worker_id = new.id having count(*) > 0
            ) held
            cross join lateral laneway.settle(
                held.seqs, held.attempts, held.verdicts, null, held.errors, null, null) s;
            return null;
        end $$;
        create trigger mutant_forget after update of session on laneway.workers
            for each row when (old.session is distinct from new.session)
            execute function laneway.mutant_forget();
        """,
    ),
    Mutant(
        "heartbeats end with their pipe alone",
        "C24",
        "C24",
        app="tests.crash.inherited_pipes_app:lw",
    ),
    Mutant(
        "an old signature of claim is left",
        "C23",
        "C23",
        setup="""
        do $$
        declare
            v_given text := (
                select string_agg(format('%I %s%s', f.proargnames[n], f.proargtypes[n - 1]::regtype,
                                         case when n > f.pronargs - f.pronargdefaults
                                              then ' default null' end), ', ' order by n)
                  from pg_proc f, generate_series(1, f.pronargs) n
                 where f.oid = 'laneway.claim'::regproc);
        begin
            execute format('create function laneway.claim(%s, p_left integer default null)'
                           ' returns text language sql as $f$ select null $f$', v_given);
        end $$;
        """,
    ),
    Mutant(
        "older code takes the functions back",
        "C23",
        "C23",
        setup="delete from laneway.migrations where number > 5",
    ),
    Mutant(
        "all in a dead process are charged",
        "C25",
        "C25",
        patches={"fail_worker": (("case when g.free then 'spared' else 'lost' end", "'lost'"),)},
    ),
    Mutant(
        "the server waits for transactions that fell silent",
        "C27",
        "C27",
        environment={"LANEWAY_IDLE_TRANSACTION_TIMEOUT": "60"},
    ),
    Mutant(
        "silent connections are waited for",
        "C28",
        "C28",
        environment={"LANEWAY_SILENCE_TIMEOUT": "60", "LANEWAY_STATEMENT_TIMEOUT": "60"},
    ),
    Mutant(
        "who leads again sleeps on",
        "C29",
        "C29",
        app="tests.crash.deaf_scheduler_app:lw",
    ),
    Mutant(
        "one log is like another",
        "C30",
        "C30",
        patches={"log_identity": (("left(md5(", "left('00000000' || md5("),)},
    ),
    Mutant(
        "plans of a clock ahead are kept",
        "C31",
        "C31",
        app="tests.crash.stale_plans_app:lw",
    ),
    Mutant(
        "jobs start after their first parent",
        "C32",
        "I16",
        patches={"count_down": (("filter (where c.missing <= u.n)", "filter (where true)"),)},
        scale=0.1,
    ),
    Mutant(
        "failed parents release all their children",
        "C32",
        "I16",
        patches={
            "note_ends": (
                (
                    "o.status = 'completed' or e.rule = 'run' as is_satisfied",
                    "true as is_satisfied",
                ),
            )
        },
        scale=0.1,
    ),
    Mutant(
        "edges are counted again after a retry",
        "C32",
        "I16",
        patches={
            "note_ends": (
                (
                    "delete from laneway.open_edges e where",
                    "select e.child from laneway.open_edges e where",
                ),
                ("returning e.child", ""),
            )
        },
    ),
    Mutant(
        "countdowns without a lock",
        "C32",
        "I12",
        # The constraint would refuse the second of two ends.
        setup="alter table laneway.countdowns drop constraint countdowns_missing_check",
        patches={
            "count_down": (
                (
                    "offset 0 for update skip locked) c on true;",
                    "offset 0) c on true; perform pg_sleep(0.02);",
                ),
            )
        },
    ),
    Mutant(
        "work left by ended jobs is dropped",
        "C32",
        "I12",
        setup="""
        create function laneway.mutant_drop() returns trigger language plpgsql as $$
        begin
            return null;
        end $$;
        create trigger mutant_drop before insert on laneway.arrivals
            for each row execute function laneway.mutant_drop();
        """,
        scale=0.1,
    ),
    Mutant(
        "sub-jobs are submitted again",
        "C33",
        "I2",
        # Sometimes, so that a job ends in spite of it.
        patches={
            "stored_waits": (
                (
                    "cardinality(h.subjects)",
                    "case when random() < 0.3 then 0 else cardinality(h.subjects) end",
                ),
            ),
            "submit_sub_jobs": (
                ("if stored > p_offset or p_total = 0 then", "if p_total = 0 then"),
            ),
        },
        scale=0.1,
    ),
    Mutant(
        "events and waits miss each other",
        "C33",
        "I12",
        setup="""
        create function laneway.mutant_drop() returns trigger language plpgsql as $$
        begin
            -- So that events and waits do commit at the same time, on any machine.
            perform pg_sleep(0.05);
            return null;
        end $$;
        create trigger mutant_drop before insert on laneway.event_checks
            for each row execute function laneway.mutant_drop();
        """,
        scale=0.1,
    ),
    Mutant(
        "events are taken twice",
        "C33",
        "C33",
        patches={"take_event": (("and h.event_id is not null))", "and false))"),)},
        scale=0.1,
    ),
    Mutant(
        "ended sub-jobs leave their owner waiting",
        "C33",
        "I12",
        patches={"count_down": (("x.reason in ('jobs', 'sub_jobs')", "x.reason = 'jobs'"),)},
        scale=0.1,
    ),
    Mutant(
        "sleeps end at once",
        "C33",
        "C33",
        patches={
            "begin_wait": (
                ("v_wait.until <= v_now then", "v_wait.until <= v_now + interval '1 h' then"),
            )
        },
        scale=0.1,
    ),
    Mutant(
        "cancelled jobs leave their sub-jobs",
        "C33",
        "I12",
        patches={"cancel_owned": (("where l.owner = p_seq", "where l.owner = p_seq and false"),)},
        scale=0.1,
    ),
)
