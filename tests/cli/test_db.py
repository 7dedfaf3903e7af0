"""Laws of `laneway db` and `doctor`."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from laneway import __version__
from laneway.embedded import binaries
from laneway.store.aborted_statements import StatementTimeout
from laneway.store.apply_grants import apply_grants
from laneway.store.grants import grants
from laneway.store.rights import ALL_ROLES
from tests.cli.conftest import Run, invoke
from tests.support.job_factory import JobFactory


def test_migrate_and_status_print_applied_migrations(
    run: Run, empty_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANEWAY_DATABASE_URL", empty_dsn)
    before = json.loads(run("db", "status", "--json").stdout)
    assert before["applied"] == []
    assert "laneway db migrate" in run("db", "status").stderr
    assert (run("db", "status").exit_code, run("db", "status", "--check").exit_code) == (0, 1)
    assert run("db", "status", "--check", "--json").exit_code == 1
    unready = run("jobs", "ls")
    assert (unready.exit_code, "laneway db migrate" in unready.stderr) == (5, True)
    assert run("db", "migrate").stdout.splitlines() == before["pending"]
    again = run("db", "migrate")
    assert (again.stdout, again.stderr) == ("", "the schema is up to date\n")
    after = json.loads(run("db", "status", "--json").stdout)
    assert (after["pending"], after["data_dir"]) == ([], None)
    assert after["applied"] == before["pending"]
    found = run("db", "status", "--check")
    newest = before["pending"][-2]
    summary = f"laneway {__version__}: the schema is up to date at {newest}\n"
    assert (found.exit_code, found.stderr) == (0, summary)


def test_half_restored_schema_names_what_is_missing(
    run: Run, empty_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANEWAY_DATABASE_URL", empty_dsn)
    assert run("db", "migrate").exit_code == 0
    with psycopg.connect(empty_dsn, autocommit=True, application_name="tests") as conn:
        conn.execute("drop table laneway.slot_counts cascade")
        conn.execute("drop function laneway.report cascade")
    state = run("db", "status", "--check")
    assert state.exit_code == 1
    assert {"missing  slot_counts", "missing  slots_held", "missing  report()"} <= {
        *state.stdout.splitlines()
    }
    assert "restore the whole dump" in state.stderr
    again = run("db", "migrate")
    assert again.exit_code == 5
    assert "these are missing: report(), slot_counts, slots_held" in again.stderr
    assert "restore the whole dump" in again.stderr
    found = run("doctor")
    assert found.exit_code == 1
    assert "✘ schema" in found.stdout
    assert "run `laneway db migrate`" not in found.stdout


def test_status_shows_embedded_data_directory(
    run: Run, dsn: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("LANEWAY_DATABASE_URL", raising=False)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("LANEWAY_DATA_DIR", str(tmp_path))
    monkeypatch.setattr("laneway.app.open_database.resolve_dsn", lambda settings, **options: dsn)
    where = run("db", "path").stdout.strip()
    assert f"embedded {where}\n" in run("db", "status").stdout
    assert json.loads(run("db", "status", "--json").stdout)["data_dir"] == where


def test_sql_prints_pending_migrations(run: Run) -> None:
    whole = run("db", "sql").stdout
    assert "create table laneway.jobs" in whole
    assert "create table laneway.jobs" not in run("db", "sql", "--from", 9000).stdout


@pytest.mark.parametrize("role", ALL_ROLES)
def test_grants_are_printed_for_every_role(run: Run, role: str) -> None:
    printed = run("db", "grants", "--role", role, "--to", "app_user")
    assert printed.exit_code == 0
    assert '"app_user"' in printed.stdout


def test_grants_require_known_role_and_target(run: Run) -> None:
    assert run("db", "grants", "--role", "admin", "--to", "x").exit_code == 2
    assert run("db", "grants", "--role", "worker").exit_code == 2


def test_grants_to_a_role_that_does_not_exist_fail_in_psql(program: Run) -> None:
    printed = program("db", "grants", "--role", "worker", "--to", "nobody_here").stdout
    applied = program("db", "psql", input=printed)
    assert applied.returncode == 3
    assert applied.stderr.count("ERROR") == 1


def test_psql_takes_its_own_options_without_dashes_before_them(program: Run) -> None:
    found = program("db", "psql", "-qAt", "-c", "select 6 * 7")
    assert (found.stdout, found.returncode) == ("42\n", 0)
    separated = program("db", "psql", "--", "-qAt", "--command=select 6 * 7")
    assert (separated.stdout, separated.returncode) == ("42\n", 0)


def test_grants_are_given_all_or_none(program: Run, factory: JobFactory, dsn: str) -> None:
    """The row-level security of the server comes last, and waits for no lock."""
    name = f"limited_{uuid4().hex}"
    factory.conn.execute(f"create role {name} nologin".encode())
    try:
        factory.conn.execute(grants(["worker"], name, "missing").encode())
        printed = program("db", "grants", "--role", "server", "--to", name).stdout
        with psycopg.connect(dsn) as reader:
            reader.execute("select from laneway.jobs")
            refused = program("db", "psql", input=printed)
        assert (refused.returncode, "lock timeout" in refused.stderr) == (3, True)
        rights = "select has_table_privilege(%s, 'laneway.audit', 'insert')"
        assert factory.conn.execute(rights, [name]).fetchone() == (False,)
        applied = program("db", "psql", input=printed)
        # No notice about a policy that does not exist yet.
        assert (applied.returncode, applied.stderr) == (0, "")
        assert factory.conn.execute(rights, [name]).fetchone() == (True,)
    finally:
        factory.conn.execute(f"drop policy if exists {name} on laneway.jobs".encode())
        factory.conn.execute(f"drop owned by {name}".encode())
        factory.conn.execute(f"drop role {name}".encode())


def test_owner_and_migrator_can_be_prepared_on_an_empty_database(
    program: Run, empty_dsn: str
) -> None:
    owner, migrator = f"owner_{uuid4().hex}", f"migrator_{uuid4().hex}"
    as_admin = {"LANEWAY_DATABASE_URL": empty_dsn}
    as_migrator = {
        "LANEWAY_DATABASE_URL": make_conninfo(empty_dsn, user=migrator, password="swordfish")
    }
    with psycopg.connect(empty_dsn, autocommit=True, application_name="tests") as conn:
        conn.execute(f"create role {owner} nologin".encode())
        conn.execute(f"create role {migrator} login password 'swordfish'".encode())
        try:
            refused = program("db", "migrate", **as_migrator)
            assert refused.returncode == 4
            assert "create schemas in the database" in refused.stderr
            for options in (["owner", "--to", owner], ["migrator", "--to", migrator]):
                printed = program("db", "grants", "--owner", owner, "--role", *options).stdout
                assert program("db", "psql", input=printed, **as_admin).returncode == 0
            migrated = program("db", "migrate", **as_migrator)
            assert migrated.returncode == 0, migrated.stderr
            owned = "select nspowner::regrole::text from pg_namespace where nspname = 'laneway'"
            assert conn.execute(owned).fetchone() == (owner,)
        finally:
            for role in (migrator, owner):
                conn.execute(f"drop owned by {role} cascade".encode())
                conn.execute(f"drop role {role}".encode())


def test_grants_are_applied_without_psql_by_the_owner_only(
    program: Run, factory: JobFactory, dsn: str
) -> None:
    name = f"limited_{uuid4().hex}"
    words = ("db", "grants", "--role", "worker", "--role", "client", "--apply", "--to", name)
    unknown = program(*words)
    assert (unknown.returncode, "create role" in unknown.stderr) == (2, True)
    factory.conn.execute(f"create role {name} login password 'swordfish'".encode())
    limited = make_conninfo(dsn, user=name, password="swordfish")
    try:
        refused = program(*words, LANEWAY_DATABASE_URL=limited)
        assert (refused.returncode, "migration login" in refused.stderr) == (4, True)
        applied = program(*words)
        assert (applied.returncode, applied.stdout) == (0, "")
        assert applied.stderr == f"{name}: has the rights of worker, client\n"
        rights = "select has_table_privilege(%s, 'laneway.worker_lanes', 'select')"
        assert factory.conn.execute(rights, [name]).fetchone() == (True,)
        # Without `--keep` it loses what only its earlier role had.
        claim = "select oid from pg_proc where proname = 'claim' limit 1"
        allowed = f"select has_function_privilege(%s, ({claim}), 'execute')"
        for options, may_claim in (("--keep",), True), ((), False):
            reader = ("db", "grants", "--role", "reader", "--apply", *options, "--to", name)
            assert program(*reader).returncode == 0
            assert factory.conn.execute(allowed.encode(), [name]).fetchone() == (may_claim,)
        # PostgreSQL only warns a role that has a right and may not pass it on.
        for other in (name, "public"):
            again = ("db", "grants", "--role", "client", "--apply", "--to", other)
            refused = program(*again, LANEWAY_DATABASE_URL=limited)
            assert (refused.returncode, "migration login" in refused.stderr) == (4, True), other
    finally:
        factory.conn.execute(f"drop owned by {name}".encode())
        factory.conn.execute(f"drop role {name}".encode())


def test_applied_grants_wait_for_a_lock_without_delaying_others(
    program: Run, factory: JobFactory, dsn: str
) -> None:
    name = f"limited_{uuid4().hex}"
    factory.conn.execute(f"create role {name} nologin".encode())
    try:
        with psycopg.connect(dsn) as reader:
            reader.execute("select from laneway.jobs")
            with pytest.raises(StatementTimeout):
                apply_grants(dsn, ["server"], name, "missing", patience_s=0)
        apply_grants(dsn, ["server"], name, "missing", patience_s=0)
    finally:
        factory.conn.execute(f"drop policy if exists {name} on laneway.jobs".encode())
        factory.conn.execute(f"drop owned by {name}".encode())
        factory.conn.execute(f"drop role {name}".encode())


def test_path_is_where_embedded_postgresql_lives(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANEWAY_DATA_DIR", str(tmp_path))
    assert run("db", "path").stdout.strip().startswith(str(tmp_path))


def test_psql_of_embedded_server_leaves_interrupts_as_they_were(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "psql").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "psql").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("LANEWAY_DATABASE_URL", "DATABASE_URL", "PGHOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("laneway.app.open_database.resolve_dsn", lambda settings, **options: dsn)
    before = signal.getsignal(signal.SIGINT)
    assert invoke("db", "psql").exit_code == 3
    assert signal.getsignal(signal.SIGINT) is before


def test_psql_gets_the_password_by_its_environment_only(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[list[str], dict[str, str]]] = []

    def execve(program: str, command: list[str], environment: dict[str, str]) -> None:
        ran.append((command, environment))
        raise SystemExit(0)

    (tmp_path / "psql").write_text("#!/bin/sh\n")
    (tmp_path / "psql").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "execve", execve)
    monkeypatch.setenv("LANEWAY_DATABASE_URL", "postgresql://u:s3cret@h/d")
    run("db", "psql", "--", "-c", "select 1")
    ((command, environment),) = ran
    assert command == [str(tmp_path / "psql"), "--set=ON_ERROR_STOP=1", "-c", "select 1"]
    assert environment["PGPASSWORD"] == "s3cret"


def test_run_gives_a_program_the_database_in_its_environment(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[list[str], dict[str, str]]] = []

    def execve(program: str, command: list[str], environment: dict[str, str]) -> None:
        ran.append((command, environment))
        raise SystemExit(0)

    (tmp_path / "pg_dump").write_text("#!/bin/sh\n")
    (tmp_path / "pg_dump").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "execve", execve)
    monkeypatch.setenv("LANEWAY_DATABASE_URL", "postgresql://u:s3cret@h/d")
    run("db", "run", "--", "pg_dump", "--file=x.sql")
    ((command, environment),) = ran
    assert command == [str(tmp_path / "pg_dump"), "--file=x.sql"]
    assert (environment["PGPASSWORD"], environment["PGDATABASE"]) == ("s3cret", "d")
    missing = run("db", "run", "--", "pg_nothing")
    assert (missing.exit_code, "pg_nothing was not found" in missing.stderr) == (1, True)


def test_run_prefers_the_programs_of_the_embedded_server(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older pg_dump refuses a newer server."""
    (tmp_path / "pg_dump").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "pg_dump").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("LANEWAY_DATABASE_URL", "DATABASE_URL", "PGHOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("laneway.app.open_database.resolve_dsn", lambda settings, **options: dsn)
    assert invoke("db", "run", "--", "pg_dump", "--version").exit_code == 0


def test_doctor_prints_results_and_next_commands(run: Run) -> None:
    shown = run("doctor")
    assert shown.exit_code == 0
    assert "✔ database" in shown.stdout
    assert "next: laneway worker APP" in shown.stdout
    checks = [json.loads(line) for line in run("doctor", "--json").stdout.splitlines()]
    assert [check["name"] for check in checks][:3] == ["database", "blockers", "schema"]
    assert "embedded" not in [check["name"] for check in checks]


def test_doctor_fails_where_work_cannot_be_done(
    run: Run, empty_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANEWAY_DATABASE_URL", empty_dsn)
    shown = run("doctor")
    assert shown.exit_code == 1
    assert "✘ schema" in shown.stdout
    assert "next: laneway db migrate" in shown.stdout


@pytest.fixture
def without_extras(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No database is set, and no PostgreSQL to embed is installed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(binaries, "WHEELS", ())
    for name in ("LANEWAY_PG_BIN", "LANEWAY_DATABASE_URL", "DATABASE_URL", "PGHOST"):
        monkeypatch.delenv(name, raising=False)


def test_doctor_names_a_missing_extra_once(run: Run, without_extras: None) -> None:
    shown = run("doctor")
    assert shown.exit_code == 5
    assert shown.stdout.count("no PostgreSQL to embed is installed") == 1
    assert shown.stdout.count("pip install") == 1
    assert "next: pip install 'laneway[embedded]', or set LANEWAY_DATABASE_URL" in shown.stdout


def test_demo_without_extras_names_only_settings_that_it_uses(
    run: Run, without_extras: None
) -> None:
    shown = run("demo", "--once")
    assert shown.exit_code == 2
    assert "pip install 'laneway[embedded]'" in shown.stderr
    assert "LANEWAY_PG_BIN" in shown.stderr
    assert "DATABASE_URL" not in shown.stderr


@pytest.mark.parametrize("role", [None, "reader", "client", "worker"])
def test_doctor_of_limited_role_lists_skipped_checks(
    run: Run, dsn: str, factory: JobFactory, monkeypatch: pytest.MonkeyPatch, role: str | None
) -> None:
    name = f"limited_{uuid4().hex}"
    factory.conn.execute(f"create role {name} nologin".encode())
    try:
        if role is not None:
            factory.conn.execute(grants([role], name, "missing").encode())
        limited = make_conninfo(dsn, options=f"-c role={name}")
        monkeypatch.setenv("LANEWAY_DATABASE_URL", limited)
        shown, text = run("doctor", "--json"), run("doctor").stdout
    finally:
        factory.conn.execute(f"drop owned by {name}".encode())
        factory.conn.execute(f"drop role {name}".encode())
    checks = {check["name"]: check for check in map(json.loads, shown.stdout.splitlines())}
    # Text names the same advice once.
    assert text.count("run `laneway doctor` as the schema's owner") == 1
    assert "examination" not in checks
    assert checks["snapshots"]["finding"] == "ok"
    not_checked = f"not checked: the database role {name} lacks a right ("
    if role is None:
        assert shown.exit_code == 1, shown.stdout
        assert checks["schema"]["finding"] == "fail"
        assert checks["schema"]["message"].startswith(not_checked)
    else:
        assert shown.exit_code == 0, shown.stdout
        assert checks["schema"]["finding"] == "ok"
        assert checks["jobs"]["message"].startswith(not_checked)
        assert "sample_lost" in checks["jobs"]["message"]


def test_sql_of_migrations_that_do_not_exist_is_refused(run: Run) -> None:
    beyond = run("db", "sql", "--from", 9999)
    assert (beyond.exit_code, beyond.stdout) == (2, "")
    assert "--from 9999: the newest migration is " in beyond.stderr
    backwards = run("db", "sql", "--from", 3, "--to", 2)
    assert (backwards.exit_code, backwards.stdout) == (2, "")
    assert "--to 2 is before --from 3" in backwards.stderr
