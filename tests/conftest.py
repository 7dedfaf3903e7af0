"""A real PostgreSQL for every test that needs one; a test that leaks anything fails.

`dsn`            a clean database with Laneway's schema, which the next test may use again
`conn`           a connection to it; `factory` creates jobs on that connection
`empty_dsn`      a fresh database with nothing in it
`postgres`       the server both live on, one for each xdist process: never restart it
`own_postgres`   a separate server, to be restarted, killed and damaged

LANEWAY_PG_BIN chooses PostgreSQL's programs, LANEWAY_TEST_DATABASE_URL a server that runs already.
"""

from __future__ import annotations

import asyncio
import fcntl
import gc
import inspect
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psutil
import psycopg
import pytest
from hypothesis import settings
from psycopg import sql

from laneway.domain.redaction import redact
from laneway.embedded.postgres import EmbeddedPostgres
from laneway.engine.process import spawned
from tests.support.database_pool import DatabasePool
from tests.support.kept_sessions import NAME as KEPT
from tests.support.kept_sessions import shared as kept_sessions
from tests.support.warm_program import WarmPopen, WarmProgram, shared

if TYPE_CHECKING:
    from tests.support.job_factory import JobFactory

# As laneway.rpc does, but before any test imports gRPC itself: its fork handlers break programs
# that start while it is busy.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
# A busy machine may pause a test for seconds in the middle of a transaction.
os.environ.setdefault("LANEWAY_IDLE_TRANSACTION_TIMEOUT", "60")

# The same examples in each run; `--hypothesis-profile=default` uses others.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

TEST_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "300",
    "max_wal_size": "256MB",
    # In the data directory, so that a killed server leaves no segment in /dev/shm.
    "dynamic_shared_memory_type": "mmap",
}
_SHARED = "LANEWAY_TEST_DATA_DIR"
_OF_PROCESS = "pg-"
# Generous: only a leak takes this long.
_GRACE = 30.0
# Closed connections are gone by then; the others wait for the garbage collector.
_MOMENT = 0.5
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

T = TypeVar("T")


@dataclass(frozen=True)
class Server:
    """The PostgreSQL server of the tests' databases."""

    dsn: str
    admin: psycopg.Connection[tuple[object, ...]]

    def dsn_of(self, database: str) -> str:
        return urlunsplit(urlsplit(self.dsn)._replace(path=f"/{database}"))

    @contextmanager
    def database(self, template: str) -> Iterator[str]:
        """Create a database for one test."""
        name = f"test_{uuid4().hex}"
        self.create(name, template)
        try:
            with self.without_leaks(name):
                yield self.dsn_of(name)
        finally:
            self.drop(name)

    @contextmanager
    def without_leaks(self, name: str) -> Iterator[None]:
        """Fail if a connection of Laneway to the database outlives the block."""
        yield
        leaked = _until_empty(lambda: self._connections(name), _MOMENT)
        if leaked:
            # The garbage collector closes a connect that was cancelled half-way. For an
            # established connection it warns, and warnings are errors.
            gc.collect()
            leaked = _until_empty(lambda: self._connections(name))
        if leaked:
            pytest.fail("connections left open:\n" + "\n".join(leaked), pytrace=False)

    def create(self, name: str, template: str) -> None:
        # Copying files takes half as long as logging every page when nothing is synced to disk.
        strategy = "STRATEGY file_copy" if self.admin.info.server_version >= 150000 else ""
        self.admin.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" {strategy}')

    def disconnect(self, name: str) -> None:
        """End the connections that tests left open; their writes are counted then."""
        others = (
            "from pg_stat_activity where datname = %s"
            f" and application_name not in ('tests pool', '{KEPT}')"
            " and backend_type = 'client backend'"
        )
        self.admin.execute(f"select pg_terminate_backend(pid) {others}".encode(), [name])
        _until_empty(lambda: self.admin.execute(f"select pid {others}".encode(), [name]).fetchall())

    def drop(self, name: str) -> None:
        self.admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def _connections(self, database: str) -> list[str]:
        rows = self.admin.execute(
            "SELECT format('%%s (%%s, %%s): %%s', application_name, pid, state, left(query, 60))"
            " FROM pg_stat_activity WHERE datname = %s AND application_name LIKE 'laneway%%'",
            [database],
        )
        return [str(row[0]) for row in rows]


def pytest_configure(config: pytest.Config) -> None:
    # Background jobs of a shell and nohup ignore these signals; programs under test would too.
    for number, usual in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGHUP, signal.SIG_DFL),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)
    if not hasattr(config, "workerinput"):  # xdist's workers inherit the environment
        os.environ[_SHARED] = tempfile.mkdtemp(prefix="lw-", dir=_quickest_place())
        Path(os.environ[_SHARED]).chmod(0o711)


def pytest_collection() -> None:
    """Collect no garbage among modules and tests: they stay."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Leave modules and tests out of garbage collection: reading them again took a lot of time."""
    gc.enable()
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ.pop(_SHARED), ignore_errors=True)


def _quickest_place() -> Path | None:
    """A directory in memory: creating a database takes 10 ms there, on a disk up to 250 ms.

    Never below pytest's own temporary directory: as root, the server's account cannot enter that.
    """
    memory = Path("/dev/shm")
    is_roomy = memory.is_dir() and shutil.disk_usage(memory).free > 2 << 30
    return memory if is_roomy and os.access(memory, os.W_OK) else None


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> Iterator[Server]:
    """One server per test process: an open transaction of another process would hold up pruning."""
    with ExitStack() as stack:
        dsn = os.environ.get("LANEWAY_TEST_DATABASE_URL")
        if not dsn:
            seed: Path = request.getfixturevalue("cluster_seed")
            path = stack.enter_context(copy_of(seed, f"{_OF_PROCESS}{os.getpid()}"))
            dsn = stack.enter_context(EmbeddedPostgres(path, settings=TEST_SETTINGS)).dsn
        admin = psycopg.connect(dsn, autocommit=True, application_name="tests")
        yield Server(dsn, stack.enter_context(admin))


@pytest.fixture(scope="session")
def template_db(postgres: Server) -> Iterator[str]:
    """The name of a migrated database to clone."""
    from laneway.store.migrate import migrate  # only here: most tests do not need the store

    name = f"template_{uuid4().hex}"
    postgres.create(name, "template0")
    try:
        migrate(postgres.dsn_of(name))
        yield name
    finally:
        postgres.drop(name)


@pytest.fixture(scope="session")
def database_pool(postgres: Server, template_db: str) -> Iterator[DatabasePool]:
    pool = DatabasePool(postgres, template_db)
    yield pool
    pool.close()


@pytest.fixture
def dsn(database_pool: DatabasePool) -> Iterator[str]:
    """A database with Laneway's schema and nothing else."""
    with database_pool.database() as dsn:
        yield dsn


@pytest.fixture
def conn(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True, application_name="tests") as conn:
        yield conn


@pytest.fixture
def factory(conn: psycopg.Connection[Any]) -> JobFactory:
    """Creates jobs in the database directly: submits, claims and ends them without a worker."""
    # Imported only here: most tests do not need the store.
    from tests.support.job_factory import JobFactory

    return JobFactory(conn)


@pytest.fixture
def empty_dsn(postgres: Server) -> Iterator[str]:
    """A fresh database with nothing in it."""
    with postgres.database("template0") as dsn:
        yield dsn


@pytest.fixture(scope="session")
def cluster_seed() -> Path:
    """A data directory after initdb: copying it is quicker than another initdb."""
    seed = _short_dir() / "seed"
    with (_short_dir() / "seed.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the first process creates it for all
        if not seed.exists():
            with EmbeddedPostgres(seed, settings=TEST_SETTINGS) as server:
                _ease_log_in(server.dsn)
    return seed


def _ease_log_in(dsn: str) -> None:
    """Hash the password once instead of 4,096 times: tests log in tens of thousands of times."""
    with psycopg.connect(dsn) as admin:
        if admin.info.server_version >= 160000:
            admin.execute("set scram_iterations = 1")
            user, password = admin.info.user, admin.info.password
            admin.execute(
                sql.SQL("alter role {} password {}").format(
                    sql.Identifier(user), sql.Literal(password)
                )
            )


@pytest.fixture
def data_dir(cluster_seed: Path) -> Iterator[Path]:
    """A data directory with a cluster, without a running server."""
    with copy_of(cluster_seed) as path:
        yield path


@pytest.fixture
def own_postgres(data_dir: Path) -> Iterator[EmbeddedPostgres]:
    """A running server that only this test uses."""
    with EmbeddedPostgres(data_dir, settings=TEST_SETTINGS) as own:
        yield own


@contextmanager
def short_data_dir(name: str = "") -> Iterator[Path]:
    """A directory that does not exist yet, at a short path that every account can reach."""
    path = _short_dir() / (name or uuid4().hex[:12])
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def copy_of(cluster_seed: Path, name: str = "") -> Iterator[Path]:
    """Copy a data directory; no server may run on it."""
    with short_data_dir(name) as path:
        subprocess.run(["cp", "-a", str(cluster_seed), str(path)], check=True)
        yield path


def _short_dir() -> Path:
    return Path(os.environ[_SHARED])


# -- processes --------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def warm_program() -> Iterator[WarmProgram]:
    """Forks programs after the imports."""
    with shared:
        yield shared


@pytest.fixture(scope="session", autouse=True)
def warm_children(warm_program: WarmProgram) -> Iterator[None]:
    """Fork the child processes of workers in this process: a thousand tests start one or more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spawned, "Popen", WarmPopen)
        yield


@pytest.fixture(scope="session", autouse=True)
def keep_sessions() -> Iterator[None]:
    """Give sessions of databases that tests use one after the other to the next test."""
    with pytest.MonkeyPatch.context() as patch:
        kept_sessions.install(patch)
        yield


@pytest.fixture
def new_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open and close sessions as users do: for tests of connections and of new sessions."""
    monkeypatch.setattr(kept_sessions, "is_on", False)


@pytest.fixture
def new_interpreters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start the child processes of workers as users do: for tests of their start."""
    monkeypatch.setattr(spawned, "Popen", subprocess.Popen)


# -- leaks ------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def leaks_nothing(request: pytest.FixtureRequest, warm_program: WarmProgram) -> Iterator[None]:
    """Fail a test that leaves a task, or a process that it started."""
    kept_sessions.begin_test()
    before = _children()
    if inspect.iscoroutinefunction(getattr(request.node, "obj", None)):
        request.getfixturevalue("leaves_no_task")
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    yield
    changed = [one for one, handler in handlers.items() if signal.getsignal(one) != handler]
    for number in changed:
        # Processes of the next test would inherit the ignored signal.
        signal.signal(number, handlers[number])
    if changed:
        names = ", ".join(signal.Signals(number).name for number in changed)
        pytest.fail(f"handlers of {names} left changed", pytrace=False)
    # The password of one test may be an ordinary word in the next.
    redact.forget()
    leaked = _until_empty(
        lambda: [child for child in _children() - before if child.pid != warm_program.pid]
    )
    if leaked:
        described = [_describe(child) for child in leaked]
        for child in leaked:
            child.kill()
        pytest.fail("processes left running:\n" + "\n".join(described), pytrace=False)


@pytest.fixture
async def leaves_no_task() -> AsyncIterator[None]:
    """Fail a test whose event loop still has something to do."""
    yield
    pending = asyncio.all_tasks() - {asyncio.current_task()}
    if pending:
        _, pending = await asyncio.wait(pending, timeout=_GRACE)
    if pending:
        described = sorted(f"{task.get_name()}: {task.get_coro()!r}" for task in pending)
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=_GRACE)
        pytest.fail("tasks left pending:\n" + "\n".join(described), pytrace=False)


# These live for the whole run: helpers of Python and of the tests, and the guardian of this
# process's server.
_LASTING = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")


# Process id → parent id, and those of the lasting. A process keeps its parent while the parent
# lives, so each is read once: reading all processes of a busy machine twice per test took a fifth
# of the suite's time.
_parents: dict[int, int] = {}
_lasting: set[int] = set()


def _children() -> set[psutil.Process]:
    """All descendants of this process, except those that live for the whole run."""
    running = psutil.pids()
    known = {pid: _parents[pid] if pid in _parents else _parent_of(pid) for pid in running}
    _parents.clear()
    _parents.update(known)
    below = {os.getpid()}
    while more := {pid for pid, parent in known.items() if parent in below} - below:
        below |= more
    _lasting.intersection_update(below)
    marks = (*_LASTING, str(_short_dir() / _OF_PROCESS))
    found = set()
    for pid in below - _lasting - {os.getpid()}:
        with suppress(psutil.NoSuchProcess):
            child = psutil.Process(pid)
            if any(mark in _describe(child) for mark in marks):
                _lasting.add(pid)
            else:
                found.add(child)
    return found


def _parent_of(pid: int) -> int:
    try:
        return psutil.Process(pid).ppid()
    except psutil.NoSuchProcess:
        return 0


def _describe(child: psutil.Process) -> str:
    try:
        return f"{child.pid} {child.status()}: {' '.join(child.cmdline())}"
    except psutil.NoSuchProcess:
        return f"{child.pid} ended"


def _until_empty(look: Callable[[], list[T]], within: float = _GRACE) -> list[T]:
    """Repeat until nothing is found; closed resources may need a moment."""
    deadline = time.monotonic() + within
    while (found := look()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found
