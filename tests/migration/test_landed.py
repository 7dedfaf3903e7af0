"""Every landed schema migrates to the current one, and landed code still works on it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from laneway.domain.approval import Approval
from laneway.errors import SchemaMismatch
from laneway.store.grants import Privilege, privileges
from laneway.store.migrate import check, definitions, migrate, migrations, status
from laneway.store.older_names import OLDER_NAMES
from laneway.store.statement import sql
from tests.conftest import Server
from tests.migration.landed import LANDED, LAST, ROOT, Code, HistoryMissing, describe
from tests.migration.test_migrate import catalog, run
from tests.store.approvals import record

APP = Path(__file__).with_name("old_app.py")
# Without the command line, whose imports take longer. `sys.argv[1]` begins the names of accounts.
MIGRATE_AND_PRINT_GRANTS = """
import json, os, sys
from laneway.store.grants import ROLES, grants
from laneway.store.migrate import migrate

migrate(os.environ["LANEWAY_DATABASE_URL"])
print(json.dumps({role: grants([role], f"{sys.argv[1]}_{role}", "no_owner") for role in ROLES}))
"""
MIGRATE_AND_WORK = """
import os, runpy, sys
from laneway.store.migrate import migrate

print(len(migrate(os.environ["LANEWAY_DATABASE_URL"])), "applied")
runpy.run_path(sys.argv[1], run_name="__main__")
"""
LAST_WITH_PUBLIC_FUNCTIONS = "e29a9c7"
# These read every column of a view that has since gained one in the middle: no worker does.
MOVED = {
    "27b4824": {
        "jobs/get_job",
        "jobs/list_all",
        "jobs/list_ended",
        "jobs/list_running",
        "jobs/list_waiting",
    }
}


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("landed")


@dataclass
class Landed:
    """A landed version: its code, a database of it, and the same database migrated."""

    code: Code
    server: Server
    stack: ExitStack

    prefix: str = field(default_factory=lambda: f"lw_{uuid4().hex[:8]}")
    """The beginning of the names of accounts in `grants`."""

    @property
    def grants(self) -> dict[str, str]:
        """The grants of the version for each of its roles."""
        return self._before[1]

    @cached_property
    def _before(self) -> tuple[str, dict[str, str]]:
        name = self._template("landed", "template0")
        dsn = self.server.dsn_of(name)
        return name, json.loads(self.code.run(dsn, "-c", MIGRATE_AND_PRINT_GRANTS, self.prefix))

    @cached_property
    def _after(self) -> str:
        name = self._template("migrated", self._before[0])
        migrate(self.server.dsn_of(name))
        assert not status(self.server.dsn_of(name)).pending
        return name

    def _template(self, kind: str, of: str) -> str:
        name = f"{kind}_{self.code.commit}_{uuid4().hex}"
        self.server.create(name, of)
        self.stack.callback(self.server.drop, name)
        return name

    @contextmanager
    def database(self) -> Iterator[str]:
        with self.server.database(self._before[0]) as dsn:
            yield dsn

    @contextmanager
    def migrated(self) -> Iterator[str]:
        with self.server.database(self._after) as dsn:
            yield dsn


@pytest.fixture(scope="session")
def version(postgres: Server, home: Path) -> Iterator[Callable[[str], Landed]]:
    made: dict[str, Landed] = {}
    with ExitStack() as stack:

        def of(commit: str) -> Landed:
            if commit not in made:
                try:
                    made[commit] = Landed(Code(commit, home), postgres, stack)
                except HistoryMissing as missing:
                    pytest.fail(str(missing), pytrace=False)
            return made[commit]

        yield of


Version = Callable[[str], Landed]


@pytest.mark.parametrize("commit", LANDED)
def test_landed_schema_migrates_to_now(
    commit: str, version: Version, postgres: Server, template_db: str
) -> None:
    with version(commit).migrated() as dsn:
        check(dsn, "0.1.0")
        now, fresh = catalog(dsn), catalog(postgres.dsn_of(template_db))
    # A column keeps its position, and functions without a successor stay for old code.
    columns = [{repr((row[0], *row[3:])) for row in of["columns"]} for of in (now, fresh)]
    assert columns[0] == columns[1]
    assert set(fresh["functions"]) <= set(now["functions"])
    for part in ("indexes", "constraints", "triggers", "views"):
        assert now[part] == fresh[part]


@pytest.mark.parametrize("commit", LANDED)
def test_no_function_is_left_with_two_signatures(commit: str, version: Version) -> None:
    twice = (
        "select proname, array_agg(oid::regprocedure) from pg_proc"
        " where pronamespace = 'laneway'::regnamespace group by 1 having count(*) > 1"
    )
    with version(commit).migrated() as dsn:
        assert run(dsn, twice) == []


@pytest.mark.parametrize("commit", LANDED)
def test_statements_of_landed_code_mean_the_same_now(commit: str, version: Version) -> None:
    """Old code reads columns by position, and its prepared statements allow no other columns."""
    landed = version(commit)
    statements = [s for s in landed.code.statements() if s[0] not in MOVED.get(commit, ())]
    with landed.database() as dsn, psycopg.connect(dsn, autocommit=True) as conn:
        before = {name: describe(conn, text) for name, text in statements}
    with landed.migrated() as dsn, psycopg.connect(dsn, autocommit=True) as conn:
        assert {name: describe(conn, text) for name, text in statements} == before


@pytest.mark.parametrize("commit", LANDED)
def test_landed_code_works_on_the_schema_of_now(commit: str, version: Version) -> None:
    landed, functions = version(commit), "select checksum from laneway.migrations where number = 0"
    with landed.migrated() as dsn:
        output = landed.code.run(dsn, "-c", MIGRATE_AND_WORK, str(APP))
        assert run(dsn, functions) == [(definitions().checksum,)]
    assert output.split() == ["0", "applied", "alone", *(f"batch-{i}" for i in range(9))]


@pytest.mark.parametrize("commit", LANDED)
def test_functions_of_upgraded_schema_are_not_public(commit: str, version: Version) -> None:
    public = (
        "select proname::text from pg_proc where pronamespace = 'laneway'::regnamespace"
        " and has_function_privilege('public', oid, 'execute')"
    )
    with version(commit).migrated() as dsn:
        assert run(dsn, public) == []


def test_older_names_are_called_by_landed_code_and_by_no_code_of_now(home: Path) -> None:
    called = {
        name
        for commit in LANDED
        for _, text in Code(commit, home).statements()
        for name in OLDER_NAMES
        if f"laneway.{name}(" in text
    }
    assert called == set(OLDER_NAMES)
    store = ROOT / "src" / "laneway" / "store"
    files = [*store.glob("definitions/*.sql"), *store.glob("sql/*/*.sql")]
    now = {path: path.read_text("utf-8") for path in files}
    aliases = now.pop(store / "definitions" / "older_names.sql")
    for older, name in OLDER_NAMES.items():
        assert f"function laneway.{older}(" in aliases
        assert f"laneway.{name}(" in aliases
        assert [path for path, text in now.items() if f"laneway.{older}(" in text] == []


def test_limited_role_of_a_landed_version_works_on_the_schema_of_now(
    version: Version, postgres: Server
) -> None:
    """With the grants of its version: the current ones follow when its last process is replaced."""
    landed, role = version(LAST), f"lw_{uuid4().hex[:8]}"
    with landed.database() as dsn:
        postgres.admin.execute(SQL("create role {} login password 'pw'").format(Identifier(role)))
        try:
            command = ("-m", "laneway", "db", "grants", "--to", role)
            roles = ("--role", "worker", "--role", "client")
            run(dsn, landed.code.run(dsn, *command, *roles))
            migrate(dsn)
            own = re.sub(r"//[^@]*@", f"//{role}:pw@", dsn, count=1)
            assert landed.code.run(own, str(APP)).split()[0] == "alone"
        finally:
            run(dsn, f"drop owned by {role}")
            postgres.admin.execute(SQL("drop role {}").format(Identifier(role)))


# Roles that lack a current right with the grants of earlier versions, such as limits outside of
# jobs: their grants are run before their programs are replaced.
COMPLETE_SINCE = {"approver": "ca1cf61", "client": "e29a9c7", "reader": "e29a9c7"}
# Rights of what is new in this version: with earlier grants, only these calls are refused.
NEW = {
    Privilege("function", name, "execute")
    for name in ("cancel_flow", "create_flow", "flow_states", "list_flows")
} | {Privilege("table", "open_edges", "select")}
HELD = """
select 'table', c.relname::text, lower(a.privilege_type)
  from pg_class c cross join lateral aclexplode(c.relacl) a
 where c.relnamespace = 'laneway'::regnamespace and a.grantee = %(role)s::text::regrole
   and c.relkind <> 'S'
union
select 'sequence', c.relname::text, lower(a.privilege_type)
  from pg_class c cross join lateral aclexplode(c.relacl) a
 where c.relnamespace = 'laneway'::regnamespace and a.grantee = %(role)s::text::regrole
   and c.relkind = 'S'
union
select 'function', f.proname::text, 'execute'
  from pg_proc f cross join lateral aclexplode(f.proacl) a
 where f.pronamespace = 'laneway'::regnamespace and a.grantee = %(role)s::text::regrole
"""


@pytest.mark.parametrize("commit", LANDED)
def test_code_of_now_has_its_rights_on_the_grants_of_a_landed_version(
    commit: str, version: Version, postgres: Server
) -> None:
    landed = version(commit)
    since = {role: LANDED.index(first) for role, first in COMPLETE_SINCE.items()}
    lacking: dict[str, list[Privilege]] = {}
    with landed.database() as dsn, ExitStack() as stack:
        names = {role: f"{landed.prefix}_{role}" for role in landed.grants}
        for role, name in names.items():
            assert "grant" in landed.grants[role]
            postgres.admin.execute(SQL("create role {}").format(Identifier(name)))
            stack.callback(postgres.admin.execute, f"drop role {name}".encode())
            stack.callback(run, dsn, f"drop owned by {name}")
            run(dsn, landed.grants[role])
        migrate(dsn)
        with psycopg.connect(dsn) as conn:
            for role, name in names.items():
                held = {Privilege(*one) for one in conn.execute(HELD, {"role": name}).fetchall()}
                missing = privileges(role) - held - NEW
                if missing and LANDED.index(commit) >= since.get(role, 0):
                    lacking[role] = sorted(missing)
    assert lacking == {}


def test_manual_grants_still_allow_public_functions(
    version: Version, postgres: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """They relied on public functions, which the upgrade restricts."""
    reads, writes = f"lw_{uuid4().hex[:8]}", f"lw_{uuid4().hex[:8]}"
    with version(LAST_WITH_PUBLIC_FUNCTIONS).database() as dsn, ExitStack() as stack:
        for name in (reads, writes):
            create = SQL("create role {} login password 'pw'").format(Identifier(name))
            postgres.admin.execute(create)
            stack.callback(postgres.admin.execute, f"drop role {name}".encode())
            stack.callback(run, dsn, f"drop owned by {name}")
            run(dsn, f"grant usage on schema laneway to {name}")
        run(
            dsn,
            f"grant select on laneway.jobs_view, laneway.worker_lanes to {reads};"
            f"grant select, insert, update, delete on all tables in schema laneway to {writes};"
            f"grant usage on all sequences in schema laneway to {writes}",
        )
        caplog.set_level("WARNING", "laneway")
        migrate(dsn)
        own = {name: re.sub(r"//[^@]*@", f"//{name}:pw@", dsn, count=1) for name in (reads, writes)}
        run(own[writes], "select laneway.submit('by_hand')")
        for name in (reads, writes):
            assert run(own[name], "select job_type from laneway.jobs_view") == [("by_hand",)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            run(own[reads], "select laneway.submit('by_hand')")
    assert f"granted to {reads}" in caplog.text
    assert "execute on lane_of" in caplog.text


# The first version had no policies.
@pytest.mark.parametrize("commit", LANDED[1:])
def test_worker_of_a_landed_version_loosens_no_policy(commit: str, version: Version) -> None:
    landed, name = version(commit), "job_types/publish_types"
    strict = record("refund", application="shop", approval=Approval(two_person=True))
    publications = [
        (sql(name), strict),
        (dict(landed.code.statements())[name], record("refund", application="old")),
    ]
    policy = "select approval, two_person from laneway.job_types where name = 'refund'"
    with landed.migrated() as dsn, psycopg.connect(dsn, autocommit=True) as conn:
        for text, published in publications:
            types = json.dumps([published.to_columns()])
            conn.execute(text.encode(), {"types": types, "loosens": True, "first": False})
        assert conn.execute(policy).fetchall() == [("always", True)]


@pytest.mark.parametrize("commit", LANDED[-3:])
def test_landed_version_reads_waiting_job_as_status_it_knows(commit: str, version: Version) -> None:
    """A list fails as a whole where one job has an unknown status."""
    landed = version(commit)
    known = (landed.code.source / "laneway/domain/states.py").read_text()
    with landed.migrated() as dsn, psycopg.connect(dsn, autocommit=True) as conn:
        submit = b"select job_id from laneway.submit(job_type => 't', after => %s)"
        parent = conn.execute(submit, [None]).fetchall()[0]
        (child,) = conn.execute(submit, [list(parent)]).fetchall()[0]
        now = conn.execute("select status from laneway.jobs_view where id = %s", [child])
        assert now.fetchall() == [("waiting",)]
        read = conn.execute(dict(landed.code.statements())["jobs/get_job"].encode(), {"id": child})
        columns = [one.name for one in read.description or ()]
        (row,) = read.fetchall()
    status = row[columns.index("status")]
    assert f'= "{status}"' in known


def test_waiters_of_a_landed_version_keep_their_place_in_the_line(version: Version) -> None:
    with version("9bc158f").database() as dsn:
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute(
                "insert into laneway.limit_waiters"
                " (limit_name, lane, worker_id, kind, site, rank, lane_since, since)"
                " select 'openai', lane, gen_random_uuid(), 'claim', '', -5, now(), now()"
                " from unnest('{one,other}'::text[]) lane"
            )
        migrate(dsn)
        with psycopg.connect(dsn, autocommit=True) as conn:
            waiters = "select * from laneway.limit_waiters order by lane"
            line = "select * from laneway.waiters_of('{openai}') order by lane"
            assert conn.execute(line).fetchall() == conn.execute(waiters).fetchall() != []


def test_changed_functions_come_with_a_new_migration(version: Version) -> None:
    """Otherwise code of the last landing would undo them."""
    with version(LAST).database() as dsn:
        known = dict(run(dsn, "select number, checksum from laneway.migrations"))
    assert migrations()[-1].number > max(known) or definitions().checksum == known[0], (
        "functions or views differ from the last landing: add a migration, even an empty one"
    )


def test_landed_migrations_never_change(version: Version) -> None:
    with version(LAST).database() as dsn:
        known = dict(run(dsn, "select name, checksum from laneway.migrations"))
    ours = {m.name: m.checksum for m in migrations()}
    assert {name: ours.get(name) for name in known if name != "definitions"} == {
        name: checksum for name, checksum in known.items() if name != "definitions"
    }


def test_functions_of_another_build_do_not_stop_code_from_starting(dsn: str) -> None:
    run(dsn, "update laneway.migrations set checksum = 'another' where number = 0")
    check(dsn, "0.1.0")
    assert status(dsn).pending == ["definitions"]


def test_code_refuses_a_database_without_functions(dsn: str) -> None:
    run(dsn, "delete from laneway.migrations where number = 0")
    with pytest.raises(SchemaMismatch, match="functions of this version"):
        check(dsn, "0.1.0")


def test_missing_history_is_named_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(HistoryMissing, match=r"0000000 is missing.*git fetch --unshallow"):
        Code("0000000", tmp_path)


def test_dropped_function_and_view_keep_their_rights(dsn: str, postgres: Server) -> None:
    role = f"reader {uuid4().hex[:8]}"
    postgres.admin.execute(SQL("create role {}").format(Identifier(role)))
    quoted = Identifier(role).as_string(None)
    try:
        run(
            dsn,
            "drop function laneway.retry;"
            "create function laneway.retry(p_seq bigint) returns text language sql"
            " as 'select null';"
            "revoke execute on function laneway.retry from public;"
            f"grant execute on function laneway.retry to {quoted};"
            "drop function laneway.wake;"
            "create function laneway.wake(p_old int) returns text language sql as 'select null';"
            f"grant execute on function laneway.wake to {quoted} with grant option;"
            "drop view laneway.jobs_view cascade;"
            "create view laneway.jobs_view as select id, seq from laneway.jobs;"
            "create view laneway.jobs_as_text as select id from laneway.jobs_view;"
            f"grant select on laneway.jobs_as_text to {quoted};"
            "update laneway.migrations set checksum = '' where number = 0",
        )
        assert migrate(dsn) == ["definitions"]
        held = run(
            dsn,
            "select proname::text, has_function_privilege(%s, oid, 'execute'),"
            " has_function_privilege(%s, oid, 'execute with grant option'),"
            " has_function_privilege('public', oid, 'execute')"
            " from pg_proc where pronamespace = 'laneway'::regnamespace"
            " and proname in ('retry', 'wake') order by 1",
            role,
            role,
        )
        assert held == [("retry", True, False, False), ("wake", True, True, False)]
        can_read = "select has_table_privilege(%s, 'laneway.jobs_as_text', 'select')"
        assert run(dsn, can_read, role) == [(True,)]
    finally:
        run(dsn, f"drop owned by {quoted}")
        postgres.admin.execute(SQL("drop role {}").format(Identifier(role)))


def test_dependents_of_old_function_are_named(dsn: str) -> None:
    run(
        dsn,
        "create function laneway.wake(p_old int) returns text language sql as 'select null';"
        "create view public.mine as select laneway.wake(1);"
        "update laneway.migrations set checksum = '' where number = 0",
    )
    with pytest.raises(
        SchemaMismatch, match=r"laneway\.wake\(integer\).*view public.mine.*db migrate"
    ):
        migrate(dsn)
    run(dsn, "drop view public.mine")
    assert migrate(dsn) == ["definitions"]
