"""The plugin in a suite of a user: a process of pytest in an empty directory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from laneway import Laneway
from laneway.errors import ConfigError, DatabaseUnavailable, LanewayError
from laneway.testing.bound_app import bind
from laneway.testing.scratch_database import VARIABLE, ScratchDatabase, open_scratch_database
from tests.conftest import short_data_dir

if TYPE_CHECKING:
    from tests.conftest import Server

APP = """
from laneway import Context, Laneway

lw = Laneway("postgresql://app@127.0.0.1:1/production")

@lw.handler("count_words")
async def count_words(ctx: Context, text: str) -> int:
    return len(text.split())
"""
INI = "[pytest]\nlaneway_app = app:lw\n"


class Suite:
    """Files of a user's project, and pytest in it."""

    def __init__(self, home: Path, **environment: str) -> None:
        self._home = home
        self._environment = environment

    def run(self, *arguments: str, **files: str) -> subprocess.CompletedProcess[str]:
        for name, text in files.items():
            (self._home / f"{name}.py").write_text(text)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("LANEWAY", "PYTEST"))}
        # Loading schemathesis would take longer than the tests.
        chosen = ("-p", "no:cacheprovider", "-p", "no:schemathesis")
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *chosen, *arguments],
            cwd=self._home,
            env={**kept, **self._environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def write(self, name: str, text: str) -> None:
        (self._home / name).write_text(text)


@pytest.fixture
def suite(tmp_path: Path, postgres: Server) -> Suite:
    made = Suite(tmp_path, **{VARIABLE: postgres.dsn})
    made.write("app.py", APP)
    made.write("pytest.ini", INI)
    return made


def test_suite_that_uses_no_fixture_imports_nothing_of_laneway(suite: Suite) -> None:
    done = suite.run(
        test_nothing="""
import sys

def test_nothing_is_imported(pytestconfig):
    assert pytestconfig.pluginmanager.has_plugin("laneway")
    loaded = {name for name in sys.modules if name.startswith("laneway")}
    assert loaded == {
        "laneway", "laneway.app", "laneway.app.open_guard",
        "laneway.testing", "laneway.testing.plugin",
    }
    assert not {"psycopg", "pydantic"} & set(sys.modules)
"""
    )
    assert done.returncode == 0, done.stdout


def test_application_of_the_ini_option_uses_the_test_database(
    suite: Suite, postgres: Server
) -> None:
    done = suite.run(
        *("-W", "error", "-o", "asyncio_default_fixture_loop_scope=function"),
        test_words="""
import os
import pytest
from app import count_words, lw
from laneway.testing import assert_submitted, run_due, run_due_async

def test_words(laneway_app, laneway_database):
    assert laneway_app is lw and os.environ["LANEWAY_DATABASE_URL"] == laneway_database
    lw.sync.submit("count_words", {"text": "a b"})
    assert_submitted(count_words, text="a b")
    assert run_due().completed[0].result == 2

def test_slate_is_clean(laneway_app):
    assert_submitted(count_words, count=0)

@pytest.mark.asyncio
async def test_asyncio(laneway_app):
    job = await count_words.submit(text="a b c")
    await run_due_async()
    assert await job.wait(timeout=10) == 3

@pytest.mark.anyio
async def test_anyio(laneway_app, anyio_backend):
    await count_words.submit(text="a")
    assert len((await run_due_async()).completed) == 1

@pytest.fixture
def anyio_backend():
    return "asyncio"
""",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = postgres.admin.execute("select datname from pg_database").fetchall()
    left = [str(name) for (name,) in found if str(name).startswith("laneway_test")]
    # The session of this process has one too.
    assert all(f"_{os.getpid()}_" in name for name in left)


def test_application_may_come_from_a_fixture(suite: Suite) -> None:
    suite.write("pytest.ini", "[pytest]\n")
    done = suite.run(
        conftest="""
import pytest
from app import lw

@pytest.fixture(scope="session")
def laneway_application():
    return lw
""",
        test_app="""
from app import lw

def test_app(laneway_app):
    assert laneway_app is lw
""",
    )
    assert done.returncode == 0, done.stdout


FORGOTTEN = """
import pytest
from app import lw
from laneway.errors import LanewayError

def test_bound(laneway_app):
    lw.sync.submit("count_words", {"text": "a"})

def test_forgotten():
    with pytest.raises(LanewayError, match="request the fixture laneway_app in this test"):
        lw.sync.submit("count_words", {"text": "a"})

def test_other(laneway_database):
    from laneway import Laneway

    other = Laneway(laneway_database)
    other.sync.submit("count_words", {"text": "a"})
    other.sync.close()
"""


def test_test_without_the_fixture_cannot_use_the_real_database(suite: Suite) -> None:
    done = suite.run(test_words=FORGOTTEN)
    assert done.returncode == 0, done.stdout


def test_lazily_imported_application_cannot_use_the_real_database(suite: Suite) -> None:
    done = suite.run(
        test_words="""
import pytest

def test_forgotten():
    from app import lw
    from laneway.errors import LanewayError

    with pytest.raises(LanewayError, match="would use its own database, not a test database"):
        lw.sync.submit("count_words", {"text": "a"})
"""
    )
    assert done.returncode == 0, done.stdout


def test_application_of_a_fixture_cannot_use_the_real_database(suite: Suite) -> None:
    suite.write("pytest.ini", "[pytest]\n")
    done = suite.run(
        conftest="""
import pytest
import app

@pytest.fixture(scope="session")
def laneway_application():
    return app.lw
""",
        test_words=FORGOTTEN,
    )
    assert done.returncode == 0, done.stdout


def test_missing_application_is_named_with_the_cure(suite: Suite) -> None:
    suite.write("pytest.ini", "[pytest]\n")
    done = suite.run(test_app="def test_app(laneway_app): pass")
    assert 'set laneway_app = "module:name" in the pytest configuration' in done.stdout
    assert "or override the fixture laneway_application" in done.stdout


def test_each_xdist_worker_has_its_own_database(suite: Suite, tmp_path: Path) -> None:
    done = suite.run(
        *("-n", "2", "--dist", "each"),
        test_names="""
from pathlib import Path
from uuid import uuid4
from app import count_words, lw
from laneway.testing import assert_submitted, run_due

def test_name(laneway_app, laneway_database):
    Path(f"{uuid4()}.dsn").write_text(laneway_database)
    lw.sync.submit("count_words", {"text": "a"})
    assert_submitted(count_words, count=1)
    run_due()
""",
    )
    assert done.returncode == 0, done.stdout
    assert len({path.read_text() for path in tmp_path.glob("*.dsn")}) == 2


@pytest.mark.slow
def test_embedded_server_is_used_without_a_url(tmp_path: Path) -> None:
    with short_data_dir() as home:
        home.mkdir(mode=0o755)
        suite = Suite(tmp_path, LANEWAY_DATA_DIR=str(home / "data"))
        suite.write("app.py", APP)
        suite.write("pytest.ini", INI)
        done = suite.run(
            test_words="""
from app import lw
from laneway.testing import run_due

def test_words(laneway_app):
    lw.sync.submit("count_words", {"text": "a b"})
    assert len(run_due().completed) == 1
"""
        )
        assert done.returncode == 0, done.stdout
        assert [path.name for path in home.iterdir()] == ["testing-data"]


def test_role_that_is_not_a_superuser_is_refused(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"plain_{os.getpid()}"
    role = sql.Identifier(name)
    postgres.admin.execute(sql.SQL("create role {} login password 'p'").format(role))
    monkeypatch.setenv(VARIABLE, make_conninfo(postgres.dsn, user=name, password="p"))
    try:
        with pytest.raises(ConfigError, match="is not a superuser"), open_scratch_database():
            pass
    finally:
        postgres.admin.execute(sql.SQL("drop role {}").format(role))


def test_killed_test_processes_leave_no_database(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    name = f"laneway_test_{ended.pid}_abandoned"
    postgres.create(name, "template0")
    monkeypatch.setenv(VARIABLE, postgres.dsn)
    with open_scratch_database():
        assert not exists(postgres, name)


def exists(postgres: Server, database: str) -> bool:
    found = postgres.admin.execute("select from pg_database where datname = %s", [database])
    return found.fetchone() is not None


@pytest.mark.parametrize("is_inside", [True, False])
def test_database_with_a_session_of_its_test_process_stays(
    postgres: Server, monkeypatch: pytest.MonkeyPatch, is_inside: bool
) -> None:
    """The process may be alive in another container, where it has the id of none of ours."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    name = f"laneway_test_{ended.pid}_elsewhere"
    postgres.create(name, "template0")
    monkeypatch.setenv(VARIABLE, postgres.dsn)
    options = {"dbname": name} if is_inside else {"application_name": name}
    try:
        with psycopg.connect(make_conninfo(postgres.dsn, **options)), open_scratch_database():
            assert exists(postgres, name)
    finally:
        postgres.admin.execute(sql.SQL("drop database {}").format(sql.Identifier(name)))


def test_session_of_a_test_process_marks_its_database(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, postgres.dsn)
    with open_scratch_database() as database:
        [(name,)] = database.execute("select current_database()")
        database.close()
        marked = "select from pg_stat_activity where application_name = %s"
        assert postgres.admin.execute(marked, [name]).fetchone() is not None


def test_every_test_begins_with_what_a_new_schema_has(
    laneway_application: Laneway, laneway_scratch_database: ScratchDatabase
) -> None:
    counted = "select count(*), (select count(*) from laneway.jobs) from laneway.worker_lanes"
    with bind(laneway_application, laneway_scratch_database):
        laneway_application.sync.submit("shelve", {"title": "Emma"})
        before = laneway_scratch_database.execute(counted)
        laneway_scratch_database.execute("delete from laneway.worker_lanes where name = 'system'")
    with bind(laneway_application, laneway_scratch_database):
        after = laneway_scratch_database.execute(counted)
    assert (before[0][1], after[0][1]) == (1, 0)
    assert before[0][0] == after[0][0]


def test_open_transaction_of_an_earlier_test_is_named(
    laneway_scratch_database: ScratchDatabase,
) -> None:
    laneway_scratch_database.execute("alter function laneway_testing.reset() set lock_timeout = 50")
    with psycopg.connect(laneway_scratch_database.dsn, application_name="my app") as forgotten:
        forgotten.execute("lock table laneway.jobs")
        with pytest.raises(DatabaseUnavailable, match=r"still open \(process \d+, my app, idle in"):
            laneway_scratch_database.reset()
    laneway_scratch_database.reset()


def test_application_returns_to_its_own_database(
    laneway_application: Laneway, laneway_scratch_database: ScratchDatabase
) -> None:
    before = laneway_application.settings
    with bind(laneway_application, laneway_scratch_database) as bound:
        assert laneway_application.database.dsn == laneway_scratch_database.dsn
        with pytest.raises(LanewayError, match="already bound"), bind(bound.lw, bound.database):
            pass
    assert laneway_application.settings is before
