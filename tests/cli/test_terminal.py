"""The output on a terminal, tested with a pseudo-terminal."""

from __future__ import annotations

import signal
from typing import Any
from uuid import UUID

from tests.cli.terminal import terminal
from tests.support.job_factory import JobFactory


def test_watch_draws_bar_and_prints_outcome(dsn: str, factory: JobFactory) -> None:
    claim = factory.running()
    with terminal(dsn, "jobs", "watch", claim.job_id, "--interval", "50ms") as shown:
        shown.until("greet running")
        factory.settle(claim, "giveup", error='{"type": "E", "message": "no luck"}')
        assert shown.wait() == 1
    assert f"job {claim.job_id} failed: E: no luck" in shown.seen


def test_top_shows_the_lanes_until_interrupted(dsn: str) -> None:
    with terminal(dsn, "top", "--interval", "100ms") as shown:
        shown.until("interactive")
        shown.process.send_signal(signal.SIGINT)
        assert shown.wait() == 130
    assert "Traceback" not in shown.seen


def test_delete_asks_and_takes_no_for_an_answer(dsn: str, factory: JobFactory) -> None:
    job_id = factory.completed()
    with terminal(dsn, "jobs", "delete", job_id) as shown:
        shown.until("Delete 1 job?")
        shown.type("n\n")
        assert shown.wait() == 1
    assert _exists(factory, job_id)
    with terminal(dsn, "jobs", "delete", job_id) as shown:
        shown.until("Delete 1 job?")
        shown.type("y\n")
        assert shown.wait() == 0
    assert not _exists(factory, job_id)


def test_colour_is_for_terminals_unless_it_is_refused(dsn: str) -> None:
    with terminal(dsn, "lanes", "ls") as shown:
        assert shown.wait() == 0
    assert "\x1b[" in shown.seen
    with terminal(dsn, "--no-color", "lanes", "ls") as plain:
        assert plain.wait() == 0
    assert "\x1b[3" not in plain.seen


def test_ls_of_80_columns_has_run_time_tags_and_error(dsn: str, factory: JobFactory) -> None:
    factory.failed("ingestion", tags=("nightly",))
    with terminal(dsn, "--no-color", "jobs", "ls", columns=80) as shown:
        assert shown.wait() == 0
    head, row = shown.seen.splitlines()[:2]
    assert head.split() == ["ID", "TYPE", "STATUS", "AGE", "TOOK", "TAGS", "DETAIL"]
    assert max(len(head.rstrip()), len(row.rstrip())) <= 80
    for value in ("ingestion", "failed", "nightly", "ValueError"):
        assert value in row


def _exists(factory: JobFactory, job_id: UUID) -> bool:
    found: Any = factory.conn.execute("select from laneway.jobs where id = %s", [job_id]).fetchone()
    return found is not None


def test_audit_of_80_columns_cuts_nothing_off(dsn: str, factory: JobFactory) -> None:
    job_id = factory.submit()
    by = "operator@a-host-with-a-long-name.example"
    with terminal(dsn, "--by", by, "jobs", "cancel", job_id) as shown:
        assert shown.wait() == 0
    with terminal(dsn, "--no-color", "audit", columns=80) as shown:
        assert shown.wait() == 0
    head, *rows = (line.rstrip() for line in shown.seen.splitlines())
    assert head.split() == ["ID", "AGE", "ACTOR", "DOOR", "ACTION", "NAME", "CHANGE", "CLAIMED"]
    assert max(map(len, rows)) <= 80
    assert "…" not in shown.seen
    first = rows[0]
    assert " cli " in first
    assert " job.cancelled " in first

    def column(name: str, following: str) -> str:
        return "".join(row[head.index(name) : head.index(following)].strip() for row in rows)

    assert column("ACTOR", "DOOR") == by
    assert column("NAME", "CHANGE") == str(job_id)
