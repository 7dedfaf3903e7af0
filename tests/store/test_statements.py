"""Every SQL file says what it guarantees and can be prepared; the schema knows our statuses."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from laneway.domain.states import TERMINAL, Status
from laneway.store.statement import sql
from tests.support.store_client import StoreClient

ROOT = Path(str(files("laneway.store").joinpath("sql")))
NAMES = sorted(str(p.relative_to(ROOT))[:-4] for p in ROOT.glob("*/*.sql"))
PARAMETER = re.compile(r"%\((\w+)\)s")


def test_there_are_statements() -> None:
    assert len(NAMES) > 30
    assert not list(ROOT.glob("*.sql")), "each statement has an area"


@pytest.mark.parametrize("name", NAMES)
def test_statement_prepares_on_a_migrated_database(db: StoreClient, name: str) -> None:
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match[1] not in names:
            names.append(match[1])
        return f"${names.index(match[1]) + 1}"

    text = PARAMETER.sub(number, sql(name)).replace("%%", "%")
    db.do(f"prepare checked as {text}")
    db.do("deallocate checked")


@pytest.mark.parametrize("name", NAMES)
def test_statement_starts_with_its_guarantee(name: str) -> None:
    first = (ROOT / f"{name}.sql").read_text("utf-8").splitlines()[0]
    assert re.match(r"-- [A-Z`].{15,}[.;]$", first), first


@pytest.mark.parametrize("name", NAMES)
def test_statement_names_the_schema_of_every_table(db: StoreClient, name: str) -> None:
    tables = {
        row[0]
        for row in db.rows(
            "select relname from pg_class where relnamespace = 'laneway'::regnamespace"
            " and relkind in ('r', 'v')"
        )
    }
    text = re.sub(r"--.*", "", sql(name))
    bare = re.findall(r"\b(?:from|join|into|update)\s+([a-z_]+)\b(?!\s*\()", text)
    assert not tables & set(bare)


def checked_values(db: StoreClient, table: str, column: str) -> set[str]:
    definition = db.one(
        "select pg_get_constraintdef(oid) from pg_constraint"
        " where conrelid = %s::regclass and conname = %s",
        f"laneway.{table}",
        f"{table}_{column}_check",
    )
    return set(re.findall(r"'([^']*)'", definition))


def test_statuses_an_outcome_may_have_are_the_terminal_ones(db: StoreClient) -> None:
    assert checked_values(db, "outcome", "status") == {status.value for status in TERMINAL}


def test_retried_job_fits_among_its_attempts(db: StoreClient) -> None:
    retried = {status.value for status in TERMINAL} - {Status.COMPLETED.value}
    assert checked_values(db, "attempts", "outcome") >= retried


def test_view_knows_the_statuses_this_schema_can_hold_and_no_others(db: StoreClient) -> None:
    definition = db.one("select pg_get_viewdef('laneway.jobs_view'::regclass)")
    shown = set(re.findall(r"THEN '([a-z_]+)'::text", definition))
    assert shown == {status.value for status in Status} - {s.value for s in TERMINAL}
    assert shown | checked_values(db, "outcome", "status") <= {s.value for s in Status}


def test_hot_functions_fix_their_plans(db: StoreClient) -> None:
    settings = dict(
        db.rows(
            "select proname, proconfig from pg_proc where pronamespace = 'laneway'::regnamespace"
        )
    )
    for name in ("claim", "settle", "heartbeat", "report", "peek"):
        assert "enable_seqscan=off" in (settings[name] or []), name


def test_both_submits_of_one_job_pass_the_same_parameters() -> None:
    plain, noted = sql("jobs/submit_job"), sql("jobs/submit_and_note")
    assert plain[plain.index("  from ") :] == noted[noted.index("  from ") :]
