"""Laneway with one law taken out, to show that the rows would notice."""

from __future__ import annotations

from dataclasses import dataclass

from tests.crash.witness import Conn


@dataclass(frozen=True)
class Twin:
    """A change of one function in the database, the row that must notice and the law it breaks."""

    name: str
    row: str
    law: str
    function: str
    old: str
    new: str
    scale: float = 0.2

    def apply(self, conn: Conn) -> None:
        row = conn.execute(
            "select pg_get_functiondef(('laneway.' || %s)::regproc)", [self.function]
        ).fetchone()
        assert row is not None
        source: str = row[0]
        if self.old not in source:
            raise LookupError(f"laneway.{self.function} has no {self.old!r} any more")
        conn.execute(source.replace(self.old, self.new, 1).encode())


TWINS = (
    Twin("settle unfenced", "C2", "I5", "settle",
         "where l.seq = g.seq and l.attempt = g.attempt", "where l.seq = g.seq"),
)  # fmt: skip
