"""Throughput by the database's clock, from the first claim to the last commit."""

from __future__ import annotations

from bench.server import Database


def rate(database: Database, after: int, count: int) -> float:
    """Jobs per second of the first `count` that ended, among those numbered above `after`."""
    row = database.conn.execute(
        """
        with ended as materialized (
            select o.xmin as xid, o.claimed_at from laneway.outcome o
             where o.seq > %s order by o.finished_at limit %s
        )
        select (select count(*) from ended),
               extract(epoch from (select max(pg_xact_commit_timestamp(t.xid))
                                     from (select xid from ended group by xid) t)
                                  - (select min(claimed_at) from ended))
        """,
        [after, count],
    ).fetchone()
    assert row is not None
    assert row[0] == count, f"{row[0]} jobs ended, not {count}"
    return count / float(row[1])


def quarter_rates(database: Database, after: int) -> tuple[float, float]:
    """Jobs per second in the first and in the last quarter of those that ended."""
    row = database.conn.execute(
        """
        with ended as materialized (
            select o.finished_at, row_number() over (order by o.finished_at) as n,
                   count(*) over () as total
              from laneway.outcome o where o.seq > %s
        ), times as (
            select (select min(claimed_at) from laneway.outcome where seq > %s) as t0,
                   min(finished_at) filter (where n >= total / 4) as t1,
                   min(finished_at) filter (where n >= total * 3 / 4) as t3,
                   max(finished_at) as t4, max(total) as total
              from ended
        )
        select total / 4 / extract(epoch from t1 - t0), total / 4 / extract(epoch from t4 - t3)
          from times
        """,
        [after, after],
    ).fetchone()
    assert row is not None
    return float(row[0]), float(row[1])
