"""The example of SQLAlchemy: jobs in the transactions of sessions, sync and async."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.integrations.examples.programs import Environment, until

pytestmark = pytest.mark.integration


def test_jobs_are_part_of_the_sessions_transactions(dsn: str, tmp_path: Path) -> None:
    shop = Environment("sqlalchemy", "sqlalchemy", tmp_path, LANEWAY_DATABASE_URL=dsn)
    with (
        shop.start("-m", "laneway", "worker", "shop:lw") as worker,
        psycopg.connect(dsn, autocommit=True, application_name="tests") as conn,
    ):
        shop.run("shop.py")
        ended = "select count(*) from laneway.jobs_view where status = 'completed'"
        until(lambda: conn.execute(ended).fetchone() == (3,), lambda: worker.output)
        assert conn.execute("select count(*) from laneway.jobs_view").fetchone() == (3,)
        orders = conn.execute("select item, receipt from orders order by item").fetchall()
        assert orders == [(each, f"receipt for {each}") for each in ("book", "lamp", "pen")]
        assert worker.stop() == 0
