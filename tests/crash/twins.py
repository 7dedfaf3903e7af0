"""Laneway with one law taken out, to show that the rows would notice.

A twin stands in front of a function of the database and spoils what it is asked, so it does not
depend on how the function is written. Where only a change inside will do, it patches its text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.crash.witness import Conn


@dataclass(frozen=True)
class Twin:
    """A spoiled function of the database, the row that must notice, and the law that it breaks."""

    name: str
    row: str
    law: str
    function: str
    first: str = ""  # done before the function is called
    instead: Mapping[str, str] = field(default_factory=dict)  # argument → what it is given
    patches: tuple[tuple[str, str], ...] = ()
    only: tuple[str, ...] = ()  # of C2: these kinds of write alone
    scale: float = 0.2

    def apply(self, conn: Conn) -> None:
        row = conn.execute(
            "select pg_get_functiondef(oid), pg_get_function_identity_arguments(oid),"
            " pg_get_function_arguments(oid), pg_get_function_result(oid), proargnames[1:pronargs]"
            " from pg_proc where oid = ('laneway.' || %s)::regproc",
            [self.function],
        ).fetchone()
        assert row is not None
        source, identity, arguments, result, names = row
        if self.patches:
            conn.execute(self._patched(source).encode())
            return
        name = f"laneway.{self.function}"
        conn.execute(f"alter function {name}({identity}) rename to {self.function}_sound".encode())
        given = ", ".join(self.instead.get(argument, argument) for argument in names)
        conn.execute(
            f"create function {name}({arguments}) returns {result} language sql volatile as $$"
            f" {self.first}{';' if self.first else ''}"
            f" select * from {name}_sound({given}) $$".encode()
        )

    def _patched(self, source: str) -> str:
        for old, new in self.patches:
            if old not in source:
                raise LookupError(f"laneway.{self.function} has no {old!r} any more")
            source = source.replace(old, new, 1)
        return source


def _running(seqs: str, attempts: str, condition: str = "true") -> str:
    """Whatever attempt runs in place of the one that was named."""
    return (
        "array(select case when l.seq is not null then l.attempt else g.attempt end"
        f" from unnest({seqs}, {attempts}) with ordinality g (seq, attempt, n)"
        f" left join laneway.lease l on l.seq = g.seq and {condition} order by g.n)"
    )


TWINS = (
    Twin(
        "settle unfenced",
        "C2",
        "I5",
        "settle",
        instead={"p_attempts": _running("p_seqs", "p_attempts")},
        only=("complete",),
    ),
    Twin(
        "release unfenced",
        "C2",
        "I5",
        "settle",
        instead={"p_attempts": _running("p_seqs", "p_attempts", "p_verdicts[g.n] = 'release'")},
        only=("release",),
    ),
    Twin(
        "heartbeat unfenced",
        "C2",
        "I5",
        "heartbeat",
        instead={"p_attempts": _running("p_seqs", "p_attempts")},
        only=("heartbeat",),
    ),
    Twin(
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
    Twin(
        "slots unlocked",
        "C1",
        "I9",
        "claim",
        patches=(
            (
                "perform from laneway.worker_lanes l where l.name = p_lane for no key update;",
                "",
            ),
            # The pause between count and claim that a busy server makes by itself.
            (
                "v_room := least(v_room, v_free);",
                "v_room := least(v_room, v_free); perform pg_sleep(0.05);",
            ),
        ),
    ),
    Twin(
        "exhausted jobs not taken back",
        "C1",
        "I12",
        "overdue",
        patches=(
            (
                "where l.lease_until < p_now",
                "where l.lease_until < p_now and l.retries < l.max_retries",
            ),
        ),
    ),
    Twin(
        "taken back too early",
        "C1",
        "I6",
        "watch",
        instead={"p_now": "clock_timestamp() + interval '1.6 s'"},
    ),
    Twin(
        "budget overdrawn",
        "C11",
        "I8",
        "settle",
        first="update laneway.lease set max_retries = max_retries + 1"
        " where seq = any (p_seqs) and max_retries = retries",
    ),
    Twin(
        "cancel forgotten",
        "C1",
        "I11",
        "settle",
        first="update laneway.lease set cancel_requested_at = null where seq = any (p_seqs)",
        instead={"p_verdicts": "array_replace(p_verdicts, 'cancel', 'fail')"},
    ),
    Twin(
        "leadership taken from a live leader",
        "C7",
        "I10",
        "lead",
        first="update laneway.leader set holder = p_holder, epoch = epoch + 1"
        " where holder <> p_holder and random() < 0.3",
    ),
)
