"""`laneway jobs import`: rows of another table become jobs, each once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.cli.conftest import Run

TABLE = """
create schema shop;
create table shop.jobs (
    id bigserial primary key, queue text not null, kind text not null, args jsonb, rank integer,
    due_at timestamptz, state text not null default 'queued', laneway_id uuid,
    updated_at timestamptz default now())
"""
PLAN: dict[str, Any] = {
    "table": "shop.jobs",
    "where": "queue = 'mail' and state = 'queued'",
    "job_type": "kind",
    "payload": "args",
    "moved": "state = 'moved', laneway_id = laneway_job_id",
    "options": {"priority": "10 - rank", "run_at": "due_at", "tags": "array['old', kind]"},
    "job_types": {"shop.tasks.send": "send_mail"},
}
TOO_LARGE = json.dumps({"text": "x" * 1_100_000})
Write = Callable[..., Path]


@pytest.fixture
def conn(dsn: str) -> Any:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(TABLE)
        yield conn


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write the plan, with other values."""

    def write(**other: Any) -> Path:
        plan = {name: value for name, value in {**PLAN, **other}.items() if value is not None}
        tables = {name: plan.pop(name) for name in ("options", "job_types") if name in plan}
        lines = [f"{name} = {_toml(value)}" for name, value in plan.items()]
        for name, table in tables.items():
            lines += [f"[{name}]", *(f'"{key}" = {_toml(each)}' for key, each in table.items())]
        file = tmp_path / "plan.toml"
        file.write_text("\n".join(lines), "utf-8")
        return file

    return write


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"""{value}"""'


def add(conn: Any, count: int, **columns: Any) -> None:
    row = {"queue": "mail", "kind": "shop.tasks.send", "args": '{"to": "ada"}', **columns}
    names = ", ".join(row)
    values = ", ".join(f"%({name})s" for name in row)
    for _ in range(count):
        conn.execute(f"insert into shop.jobs ({names}) values ({values})", row)


def states(conn: Any) -> dict[str, int]:
    return dict(conn.execute("select state, count(*) from shop.jobs group by 1").fetchall())


def test_rows_become_jobs_with_their_options(run: Run, conn: Any, write: Write) -> None:
    add(conn, 3, rank=3)
    add(conn, 1, rank=None, due_at="2030-01-01 12:00+00")
    add(conn, 2, queue="reports")
    done = run("jobs", "import", write(), "--batch", "2")
    assert (done.exit_code, done.stdout) == (0, "moved 4 jobs from shop.jobs\n")
    found = conn.execute(
        "select v.job_type, v.status, v.priority, v.tags, v.payload ->> 'to', count(*)"
        "  from laneway.jobs_view v join shop.jobs s on s.laneway_id = v.id group by 1, 2, 3, 4, 5"
        " order by 6 desc"
    ).fetchall()
    tags = ["old", "shop.tasks.send"]
    assert found == [
        ("send_mail", "approved", 7, tags, "ada", 3),
        ("send_mail", "approved", 0, tags, "ada", 1),
    ]
    assert states(conn) == {"moved": 4, "queued": 2}
    again = run("jobs", "import", write())
    assert (again.exit_code, again.stdout) == (0, "moved 0 jobs from shop.jobs\n")
    audit = "select name, after ->> 'jobs' from laneway.audit where action = 'job.imported'"
    assert conn.execute(audit).fetchall() == [("shop.jobs", "2"), ("shop.jobs", "2")]


def test_rows_of_running_workers_are_left_to_them(
    run: Run, conn: Any, dsn: str, write: Write
) -> None:
    add(conn, 3)
    with psycopg.connect(dsn) as worker:
        worker.execute("select from shop.jobs order by id limit 1 for update")
        done = run("jobs", "import", write(moved=None, delete=True))
        assert done.stdout == "moved 2 jobs from shop.jobs\n"
        worker.execute("update shop.jobs set state = 'done'")
        worker.commit()
    assert states(conn) == {"done": 1}


def test_rows_that_cannot_become_jobs_stay_and_are_named(run: Run, conn: Any, write: Write) -> None:
    add(conn, 2, args=TOO_LARGE)
    add(conn, 1)
    add(conn, 1, kind="")
    add(conn, 1, rank=2_000_000_000)
    done = run("jobs", "import", write(), "--batch", "2")
    assert (done.exit_code, done.stdout) == (1, "moved 1 jobs from shop.jobs\n")
    for row, field in ((1, "payload"), (2, "payload"), (4, "job_type"), (5, "priority")):
        assert f"row {row} stays: {field}: " in done.stderr
    assert states(conn) == {"queued": 4, "moved": 1}


def test_row_with_the_id_of_a_refused_one_is_moved(run: Run, conn: Any, write: Write) -> None:
    add(conn, 1, args=TOO_LARGE)
    add(conn, 2)
    add(conn, 1, args=TOO_LARGE)
    done = run("jobs", "import", write(id="queue"), "--batch", "1")
    assert (done.exit_code, done.stdout) == (1, "moved 2 jobs from shop.jobs\n")
    assert done.stderr.count("row mail stays: payload: ") == 2
    assert states(conn) == {"queued": 2, "moved": 2}


def test_rows_of_other_partitions_are_left_alone(run: Run, conn: Any, write: Write) -> None:
    conn.execute("drop table shop.jobs")
    conn.execute(
        TABLE.partition(";")[2].replace("bigserial primary key", "bigserial")
        + " partition by list (state)"
    )
    for state in ("queued", "done", "moved"):
        conn.execute(f"create table shop.{state} partition of shop.jobs for values in ('{state}')")
    add(conn, 3)
    add(conn, 3, state="done")
    done = run("jobs", "import", write(moved=None, delete=True))
    assert (done.exit_code, done.stdout) == (0, "moved 3 jobs from shop.jobs\n")
    assert states(conn) == {"done": 3}
    add(conn, 3)
    assert run("jobs", "import", write()).stdout == "moved 3 jobs from shop.jobs\n"
    assert states(conn) == {"done": 3, "moved": 3}


def test_rows_whose_unique_key_a_job_has_stay(run: Run, conn: Any, write: Write) -> None:
    add(conn, 2)
    done = run("jobs", "import", write(moved=None, delete=True, options={"unique_key": "kind"}))
    assert (done.exit_code, done.stdout) == (1, "moved 1 jobs from shop.jobs\n")
    assert "row 2 stays: unique_key: job " in done.stderr
    assert states(conn) == {"queued": 1}


def test_rows_that_a_trigger_keeps_move_nothing(run: Run, conn: Any, write: Write) -> None:
    conn.execute(
        "create function shop.keep() returns trigger language plpgsql as 'begin return null; end'"
    )
    conn.execute(
        "create trigger keep before update on shop.jobs for each row execute function shop.keep()"
    )
    add(conn, 2)
    done = run("jobs", "import", write())
    assert (done.exit_code, "changed 0 of 2 rows" in done.stderr) == (2, True)
    assert conn.execute("select count(*) from laneway.jobs").fetchone() == (0,)


def test_payloads_that_cannot_be_read_stay(run: Run, conn: Any, write: Write) -> None:
    add(conn, 1, args='{"n": 1e5000}')
    add(conn, 1)
    assert run("jobs", "import", write()).stdout == "moved 1 jobs from shop.jobs\n"
    plan = write(payload="kind || ' is text'", where="state = 'moved'")
    assert run("jobs", "import", plan).stdout == "moved 0 jobs from shop.jobs\n"
    assert states(conn) == {"queued": 1, "moved": 1}


def test_batches_that_are_too_large_together_are_split(run: Run, conn: Any, write: Write) -> None:
    add(conn, 20, args=json.dumps({"text": "x" * 1_000_000}))
    assert run("jobs", "import", write()).stdout == "moved 20 jobs from shop.jobs\n"
    assert states(conn) == {"moved": 20}


def test_dry_run_changes_nothing(run: Run, conn: Any, write: Write) -> None:
    add(conn, 3)
    add(conn, 1, args=TOO_LARGE)
    done = run("jobs", "import", write(), "--dry-run")
    assert (done.exit_code, done.stdout) == (1, "would move 3 jobs from shop.jobs\n")
    assert states(conn) == {"queued": 4}
    assert conn.execute("select count(*) from laneway.jobs").fetchone() == (0,)


@pytest.mark.parametrize(
    "other, message",
    [
        ({"where": None}, "where: must be SQL text"),
        ({"moved": None}, "moved: must say what to set"),
        ({"delete": True}, "moved: must say what to set"),
        ({"colour": "red"}, "colour: is not one of"),
        ({"options": {"color": "red"}}, "options.color: is not one of priority"),
        ({"where": "queue = "}, "syntax error"),
        ({"payload": "nothing"}, 'column "nothing" does not exist'),
        ({"table": "shop.none"}, "table: shop.none was not found"),
        ({"table": "pg_catalog.pg_views"}, "no view or foreign table"),
        ({"moved": "laneway_id = laneway_job_id"}, "must make `where` false"),
        ({"where": "state like 'q%' and 1 / (id - id) = 1"}, "division by zero"),
    ],
)
def test_wrong_plans_are_refused(
    run: Run, conn: Any, write: Write, other: dict[str, Any], message: str
) -> None:
    add(conn, 1)
    done = run("jobs", "import", write(**other))
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())
    assert states(conn) == {"queued": 1}
