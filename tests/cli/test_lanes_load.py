"""Laws of `laneway lanes load`, and of `LANEWAY_LANES` in a new database."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest

from tests.cli.conftest import Run
from tests.conftest import short_data_dir
from tests.support.job_factory import JobFactory

TYPES = "select name, job_types from laneway.worker_lanes where job_types <> '{}' order by 1"
LANES = "select name from laneway.worker_lanes order by 1"


def test_load_of_a_file_prints_before_and_after(
    run: Run, factory: JobFactory, tmp_path: Path
) -> None:
    factory.running("restore")
    file = tmp_path / "lanes.toml"
    file.write_text(
        '[docs]\nmax_slots = 20\njob_types = ["index"]\n'
        '[interactive]\nmax_slots = 4\npoll_interval_ms = 2000\njob_types = ["ingestion"]\n'
    )
    planned = run("lanes", "load", file, "--dry-run")
    assert planned.exit_code == 0
    shown = planned.stdout.splitlines()
    assert shown[:4] == [
        (
            'lane docs: created: job_types ["index"], max_slots 20, poll_interval_ms 5000,'
            " stale_timeout_minutes 30, lease_seconds 30, enabled true"
        ),
        (
            'lane interactive: job_types ["ingestion", "ingest_image", "polarity"] → ["ingestion"],'
            " max_slots 2 → 4"
        ),
        "lane maintenance: deleted",
        "lane system: drained instead of deleted, because a job runs in it: enabled true → false",
    ]
    assert {"job type index: default → docs", "job type polarity: interactive → default"} <= {
        *shown[4:]
    }
    assert planned.stderr == "dry run: nothing was changed\n"
    done = run("lanes", "load", file)
    assert (done.stdout, done.stderr) == (planned.stdout, "")
    assert factory.conn.execute(LANES).fetchall() == [
        ("analysis",), ("default",), ("docs",), ("interactive",), ("system",),
    ]  # fmt: skip
    again = run("lanes", "load", file)
    assert again.stdout.splitlines() == [
        "lane system: drained instead of deleted, because a job runs in it"
    ]


def test_presets_are_loaded_by_name(run: Run, factory: JobFactory) -> None:
    before = factory.conn.execute(TYPES).fetchall()
    assert run("lanes", "load", "plain").exit_code == 0
    assert factory.conn.execute(TYPES).fetchall() == []
    assert run("lanes", "load", "plain").stderr == "unchanged\n"
    shown = json.loads(run("lanes", "load", "knowledge-graph", "--json").stdout)
    assert (shown["dry_run"], [each["action"] for each in shown["changes"]]) == (
        False,
        ["changed"] * 3,
    )
    assert factory.conn.execute(TYPES).fetchall() == before


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "has no lanes"),
        ("{", "is neither JSON nor TOML"),
        ('{"docs": {"max_slots": 10001}}', "lane docs, max_slots: must be a whole number from 0"),
        ('{"a": {"job_types": ["t"]}, "b": {"job_types": ["t"]}}', "puts the job type t into two"),
    ],
)
def test_wrong_set_is_a_usage_error(run: Run, text: str, message: str) -> None:
    refused = run("lanes", "load", "-", input=text)
    assert refused.exit_code == 2
    assert message in " ".join(refused.stderr.replace("│", " ").split())


@pytest.mark.parametrize(
    "chosen, types", [("plain", 0), ("knowledge-graph", 12), ('{"gpu": {}}', 12)]
)
def test_preset_in_settings_replaces_the_lanes_of_a_new_database(
    run: Run, empty_dsn: str, monkeypatch: pytest.MonkeyPatch, chosen: str, types: int
) -> None:
    monkeypatch.setenv("LANEWAY_DATABASE_URL", empty_dsn)
    monkeypatch.setenv("LANEWAY_LANES", chosen)
    assert run("db", "migrate").exit_code == 0
    with psycopg.connect(empty_dsn, autocommit=True) as conn:
        found = "select name from laneway.worker_lanes order by 1"
        assert [name for (name,) in conn.execute(found).fetchall()] == [
            "analysis", "default", "interactive", "maintenance", "system",
        ]  # fmt: skip
        counted = "select coalesce(sum(cardinality(job_types)), 0) from laneway.worker_lanes"
        assert conn.execute(counted).fetchone() == (types,)
        listed = "select count(*) from laneway.job_types"
        assert conn.execute(listed).fetchone() == (3 if types else 0,)
        slots = (
            "select max_slots from laneway.worker_lanes where name in ('default', 'interactive')"
        )
        assert conn.execute(f"{slots} order by name").fetchall() == [(None,), (2,)]


def test_preset_in_settings_starts_an_embedded_database(program: Run) -> None:
    with short_data_dir() as directory:
        started = program(
            "lanes", "of", "ingestion",
            LANEWAY_DATABASE_URL="", LANEWAY_DATA_DIR=str(directory), LANEWAY_LANES="plain",
        )  # fmt: skip
    assert (started.returncode, started.stdout) == (0, "default\n"), started.stderr


def test_preset_in_settings_changes_no_lane_of_a_used_database(
    run: Run, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = factory.conn.execute(TYPES).fetchall()
    monkeypatch.setenv("LANEWAY_LANES", "plain")
    # As after an upgrade of the functions.
    factory.conn.execute("update laneway.migrations set checksum = 'old' where number = 0")
    assert run("db", "migrate").stdout.splitlines() == ["definitions"]
    assert factory.conn.execute(TYPES).fetchall() == before
    factory.submit()
    factory.conn.execute("delete from laneway.migrations where number = 0")
    assert run("db", "migrate").stdout.splitlines() == ["definitions"]
    assert factory.conn.execute(TYPES).fetchall() == before


def test_entry_without_job_types_leaves_them_where_handlers_put_them(
    run: Run, factory: JobFactory
) -> None:
    factory.conn.execute("update laneway.worker_lanes set job_types = '{}'")
    factory.conn.execute(
        "insert into laneway.worker_lanes (name, max_slots, job_types)"
        " values ('slow', 1, '{crawl,scan}')"
    )
    tuned = run("lanes", "load", "-", input='{"slow": {"max_slots": 3}}')
    assert "lane slow: max_slots 1 → 3" in tuned.stdout.splitlines()
    assert factory.conn.execute(TYPES).fetchall() == [("slow", ["crawl", "scan"])]
    # Another entry may still take a type, and an empty list removes them.
    taken = '{"slow": {"max_slots": 3}, "fast": {"job_types": ["scan"]}}'
    assert "job type scan: slow → fast" in run("lanes", "load", "-", input=taken).stdout
    assert factory.conn.execute(TYPES).fetchall() == [("fast", ["scan"]), ("slow", ["crawl"])]
    empty = '{"slow": {"max_slots": 3, "job_types": []}, "fast": {}}'
    planned = run("lanes", "load", "-", "--dry-run", input=empty).stdout.splitlines()
    assert planned[-1] == "job type crawl: slow → default"
    run("lanes", "load", "-", input=empty)
    assert factory.conn.execute(TYPES).fetchall() == [("fast", ["scan"])]
