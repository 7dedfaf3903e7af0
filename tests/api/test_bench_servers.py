"""`make bench-api` and `make bench-reads` prepare two servers, a history and every read of it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import httpx2
import pytest

from bench.api import job_history
from bench.api.post import BODY
from bench.api.reads import served_reads
from bench.api.replica import BARE, OWN, make_token, serving
from bench.server import Database


@pytest.mark.parametrize(
    "command, table",
    [(OWN, "laneway.jobs"), (BARE, "public.bare_jobs")],
    ids=["laneway", "bare"],
)
def test_server_of_the_benchmark_stores_a_job(
    command: Sequence[str], table: str, dsn: str, tmp_path: Path
) -> None:
    with closing(Database(dsn, tmp_path)) as database:
        token = make_token(database)
        with serving(database, command) as server:
            answer = httpx2.post(
                f"{server.url}/jobs",
                content=BODY,
                headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
                timeout=60,
            )
        assert answer.status_code in (200, 201, 202), answer.text
        assert database.value(f"select count(*) from {table}") == 1
        database.conn.execute("drop table if exists public.bare_jobs")


def test_every_read_of_the_benchmark_is_answered(dsn: str, tmp_path: Path) -> None:
    with closing(Database(dsn, tmp_path)) as database:
        job_history.fill(database, ended=500, waiting=100)
        with served_reads(database) as reads:
            asked = [read for read in reads if read.who == "admin"]
            assert len(asked) > 200, len(asked)
            for read in asked:
                read.ask()
