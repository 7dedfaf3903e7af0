"""The life of an embedded server: start, sharing, stop."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psutil
import psycopg
import pytest

from laneway.embedded import guardian
from laneway.embedded.postgres import EmbeddedPostgres
from laneway.errors import ConfigError, DatabaseUnavailable
from tests.conftest import TEST_SETTINGS, copy_of, short_data_dir

# A process that uses the server in argv[1] until its standard input ends or it is killed.
USER = """
import sys
from pathlib import Path
from laneway.embedded.postgres import EmbeddedPostgres
postgres = EmbeddedPostgres(Path(sys.argv[1]), settings={"fsync": "off"})
postgres.start()
print(postgres._postmaster.pid, flush=True)
sys.stdin.read()
"""
# The same, with a surviving child that is forked without Python's hooks; prints its pid first.
FORKING_USER = USER.replace(
    "print(",
    """import ctypes, os, time
child = ctypes.PyDLL(None).fork()
if child == 0:
    os.closerange(0, 3)
    time.sleep(60)
    os._exit(0)
print(child)
print(""",
)


@pytest.fixture
def new_dir() -> Iterator[Path]:
    """A data directory that does not exist yet."""
    with short_data_dir() as path:
        yield path


@pytest.fixture(scope="module")
def running(cluster_seed: Path) -> Iterator[EmbeddedPostgres]:
    """A server for tests that only read."""
    with copy_of(cluster_seed) as path, embedded(path) as postgres:
        yield postgres


def embedded(data_dir: Path, **options: object) -> EmbeddedPostgres:
    return EmbeddedPostgres(data_dir, settings=TEST_SETTINGS, **options)  # type: ignore[arg-type]


def user(data_dir: Path, program: str = USER) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, str(data_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def read_server_pid(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def eventually(condition: Callable[[], bool], within: float = 30.0) -> bool:
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


PID = "select split_part(pg_read_file('postmaster.pid'), chr(10), 1)::integer"


def pid_of(postgres: EmbeddedPostgres) -> int:
    pid = ask(postgres.dsn, PID)
    assert isinstance(pid, int)
    return pid


def socket_dir_of(postgres: EmbeddedPostgres) -> Path:
    return Path(parse_qs(urlsplit(postgres.dsn).query)["host"][0])


def ask(dsn: str, question: str) -> object:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(question.encode()).fetchone()
        assert row is not None
        return row[0]


def test_started_server_answers_and_a_stopped_one_is_gone(new_dir: Path) -> None:
    postgres = embedded(new_dir)
    assert not postgres.is_running
    dsn = postgres.start()
    assert ask(dsn, "SELECT current_user || ' in ' || current_database()") == "laneway in laneway"
    pid = pid_of(postgres)
    assert postgres.stop()
    assert not postgres.is_running
    assert not guardian.command_line(pid)


async def test_one_dsn_serves_psycopg_and_asyncpg(running: EmbeddedPostgres) -> None:
    async with await psycopg.AsyncConnection.connect(running.dsn) as connection:
        assert await (await connection.execute("SELECT 1")).fetchone() == (1,)
    asyncpg = pytest.importorskip("asyncpg")
    other = await asyncpg.connect(running.dsn)
    try:
        assert await other.fetchval("SELECT 1") == 1
    finally:
        await other.close()


def test_cluster_uses_utf8_and_utc(running: EmbeddedPostgres) -> None:
    assert ask(running.dsn, "SHOW server_encoding") == "UTF8"
    assert ask(running.dsn, "SHOW timezone") == "UTC"


def test_settings_reach_the_server(data_dir: Path) -> None:
    settings = {"fsync": "off", "application_name": 'it\'s "quoted" $HOME'}
    with EmbeddedPostgres(data_dir, settings=settings) as postgres:
        with psycopg.connect(postgres.dsn, application_name=None) as connection:
            row = connection.execute("SELECT reset_val FROM pg_settings WHERE name = 'fsync'")
            assert row.fetchone() == ("off",)
            shown = connection.execute("SHOW application_name").fetchone()
        assert shown == (settings["application_name"],)


def test_invalid_setting_name_is_refused(new_dir: Path) -> None:
    with pytest.raises(ConfigError, match="not the name"):
        EmbeddedPostgres(new_dir, settings={"fsync=off -c x": "1"})


def test_starting_again_changes_nothing(running: EmbeddedPostgres) -> None:
    pid = pid_of(running)
    assert running.start() == running.dsn
    assert pid_of(running) == pid


def test_cluster_keeps_its_rows_and_its_password(data_dir: Path) -> None:
    with embedded(data_dir) as postgres:
        before = postgres.dsn
        with psycopg.connect(before) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
    with embedded(data_dir) as postgres:
        assert postgres.dsn == before
        assert ask(postgres.dsn, "SELECT number FROM kept") == 7


def test_server_that_does_not_run_has_no_dsn(new_dir: Path) -> None:
    with pytest.raises(DatabaseUnavailable, match=r"call start\(\)"):
        _ = embedded(new_dir).dsn


# -- sharing ------------------------------------------------------------------------------------


def test_processes_that_start_at_once_share_one_server(new_dir: Path) -> None:
    processes = [user(new_dir) for _ in range(3)]
    try:
        assert len({read_server_pid(process) for process in processes}) == 1
    finally:
        for process in processes:
            process.communicate("")
    assert not embedded(new_dir).is_running


def test_server_runs_until_its_last_user_leaves(data_dir: Path) -> None:
    first, second = embedded(data_dir), embedded(data_dir)
    first.start()
    second.start()
    assert not first.stop()
    assert second.is_running
    assert second.stop()
    assert not second.is_running


def test_stopping_twice_is_stopping_once(new_dir: Path) -> None:
    postgres = embedded(new_dir)
    assert postgres.stop()
    postgres.start()
    assert postgres.stop()
    assert postgres.stop()


# -- kills --------------------------------------------------------------------------------------


def test_killed_owner_leaves_no_server_running(data_dir: Path) -> None:
    owner = user(data_dir)
    pid = read_server_pid(owner)
    owner.kill()
    owner.communicate()
    assert eventually(lambda: not embedded(data_dir).is_running)
    assert eventually(lambda: not guardian.command_line(pid))


@pytest.mark.parametrize("how", ["killed", "ended"])
def test_forked_child_of_owner_does_not_keep_the_server(data_dir: Path, how: str) -> None:
    owner = user(data_dir, FORKING_USER)
    assert owner.stdout is not None
    forked = int(owner.stdout.readline())
    try:
        read_server_pid(owner)
        if how == "killed":
            owner.kill()
        owner.communicate("")
        assert eventually(lambda: not embedded(data_dir).is_running)
        os.kill(forked, 0)
    finally:
        os.kill(forked, signal.SIGKILL)


def test_owner_killed_while_it_starts_leaves_no_server_running(data_dir: Path) -> None:
    with embedded(data_dir):
        pass  # the cluster exists, so only the server starts below
    postmaster = guardian.Postmaster(data_dir)
    owner = user(data_dir)
    assert eventually(lambda: postmaster.has_processes)
    owner.kill()
    owner.communicate()
    assert eventually(lambda: not postmaster.has_processes and not _guardians(data_dir))


def test_killed_owner_leaves_the_server_to_the_others(data_dir: Path) -> None:
    owner = user(data_dir)
    pid = read_server_pid(owner)
    with embedded(data_dir) as other:
        owner.kill()
        owner.communicate()
        assert eventually(lambda: len(_guardians(data_dir)) == 1)
        assert pid_of(other) == pid
        assert ask(other.dsn, "SELECT 1") == 1
    assert not other.is_running


def test_users_killed_together_leave_no_server_running(data_dir: Path) -> None:
    users = [user(data_dir) for _ in range(3)]
    for process in users:
        read_server_pid(process)
    for process in users:
        process.kill()
    for process in users:
        process.communicate()
    assert eventually(lambda: not embedded(data_dir).is_running)


def test_forked_child_does_not_keep_its_dead_owners_server(data_dir: Path) -> None:
    forking = USER.replace(
        "sys.stdin.read()",
        "import os, time\nif os.fork() == 0: os.close(1); time.sleep(60)\nsys.stdin.read()",
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", forking, str(data_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    read_server_pid(owner)
    parent = psutil.Process(owner.pid)

    def forked() -> list[psutil.Process]:
        return [child for child in parent.children() if child.cmdline()[1:2] == ["-c"]]

    assert eventually(lambda: bool(forked()))
    child = forked()[0]
    try:
        owner.kill()
        owner.communicate()
        assert eventually(lambda: not embedded(data_dir).is_running)
        assert child.is_running()
    finally:
        child.kill()


def test_owner_that_ends_stops_its_server(data_dir: Path) -> None:
    owner = user(data_dir)
    read_server_pid(owner)
    owner.communicate("")
    assert owner.returncode == 0
    assert not embedded(data_dir).is_running


def test_untied_server_outlives_the_process_that_started_it(data_dir: Path) -> None:
    script = USER.replace('settings={"fsync": "off"}', "tie_to_parent=False")
    starter = subprocess.run(
        [sys.executable, "-c", script, str(data_dir)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    postgres = embedded(data_dir)
    assert pid_of(postgres) == int(starter.stdout)
    assert postgres.stop()
    assert not postgres.is_running


def test_user_without_a_guardian_still_holds_its_place(data_dir: Path) -> None:
    untied = embedded(data_dir, tie_to_parent=False)
    untied.start()
    with embedded(data_dir):
        pass
    assert untied.is_running
    assert untied.stop()


def test_killed_guardian_is_replaced(own_postgres: EmbeddedPostgres) -> None:
    [first] = _guardians(own_postgres.data_dir)
    first.kill()
    assert eventually(lambda: not _guardians(own_postgres.data_dir))
    own_postgres.start()
    assert len(_guardians(own_postgres.data_dir)) == 1


def test_server_whose_guardian_was_killed_still_stops(own_postgres: EmbeddedPostgres) -> None:
    [first] = _guardians(own_postgres.data_dir)
    first.kill()
    assert own_postgres.stop()
    assert not own_postgres.is_running


def test_killed_server_starts_again_with_all_it_had_committed(
    own_postgres: EmbeddedPostgres,
) -> None:
    with psycopg.connect(own_postgres.dsn) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
    own_postgres.kill()
    assert not own_postgres.is_running
    own_postgres.start()
    assert ask(own_postgres.dsn, "SELECT number FROM kept") == 7


def test_externally_killed_server_starts_again(own_postgres: EmbeddedPostgres) -> None:
    os.kill(pid_of(own_postgres), signal.SIGKILL)
    own_postgres.start()
    assert ask(own_postgres.dsn, "SELECT 1") == 1


def test_immediate_restart_keeps_committed_data(own_postgres: EmbeddedPostgres) -> None:
    pid = pid_of(own_postgres)
    with psycopg.connect(own_postgres.dsn) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
    own_postgres.restart("immediate")
    assert pid_of(own_postgres) != pid
    assert ask(own_postgres.dsn, "SELECT number FROM kept") == 7


def test_pid_reused_by_another_program_is_not_signalled(
    data_dir: Path,
) -> None:
    with embedded(data_dir) as postgres:
        pid_file = data_dir / "pgdata" / "postmaster.pid"
        lines = pid_file.read_text().splitlines()
        postgres.kill()
        bystander = subprocess.Popen(["sleep", "60"])
        try:
            pid_file.write_text("\n".join([str(bystander.pid), *lines[1:]]) + "\n")
            assert not postgres.is_running
            postgres.kill()
            postgres.restart()
            assert pid_of(postgres) != bystander.pid
            assert bystander.poll() is None
        finally:
            bystander.kill()
            bystander.wait()


def test_pid_reused_by_another_server_is_not_signalled(
    data_dir: Path, running: EmbeddedPostgres
) -> None:
    bystander = pid_of(running)
    shutil.copy2(running.data_dir / "pgdata" / "postmaster.pid", data_dir / "pgdata")
    with embedded(data_dir) as postgres:
        assert pid_of(postgres) != bystander
        postgres.kill()
    assert pid_of(running) == bystander


def test_server_that_we_did_not_start_is_left_alone(data_dir: Path) -> None:
    with embedded(data_dir) as postgres:
        pid = pid_of(postgres)
        (data_dir / "server.lock").rename(data_dir / "hidden")  # as if it had not been inherited
        with pytest.raises(ConfigError, match="did not start"):
            embedded(data_dir).start()
        assert guardian.command_line(pid)
        (data_dir / "hidden").rename(data_dir / "server.lock")


def test_interrupted_initialisation_is_restarted(new_dir: Path) -> None:
    half = new_dir / "pgdata.new"
    half.mkdir(parents=True)
    new_dir.chmod(0o711)
    (half / "PG_VERSION").write_text("18\n")
    with embedded(new_dir) as postgres:
        assert ask(postgres.dsn, "SELECT 1") == 1
    assert not half.exists()


# -- safety -------------------------------------------------------------------------------------


def test_private_files_are_closed_to_other_accounts(running: EmbeddedPostgres) -> None:
    home = running.data_dir
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in home.iterdir()}
    directories = {"pgdata", "run"}
    assert {modes[name] for name in directories} == {0o700}
    assert {mode for name, mode in modes.items() if name not in directories} == {0o600}
    assert not home.stat().st_mode & 0o066


def test_password_is_required(running: EmbeddedPostgres) -> None:
    password = (running.data_dir / "password").read_text()
    assert len(password) >= 32
    for wrong in (
        running.dsn.replace(password, "wrong"),
        running.dsn.replace(password, ""),
    ):
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(wrong, passfile="/dev/null")
    with psycopg.connect(running.dsn) as connection:
        methods = connection.execute("SELECT DISTINCT auth_method FROM pg_hba_file_rules")
        assert methods.fetchall() == [("scram-sha-256",)]


def test_password_is_in_no_argument_list_and_no_log(running: EmbeddedPostgres) -> None:
    password = (running.data_dir / "password").read_text()
    text = running.log_path.read_text()
    for process in psutil.process_iter():
        try:
            text += " ".join(process.cmdline())
        except psutil.Error:
            continue
    assert password not in text


def test_server_listens_on_no_network_unless_given_a_port(running: EmbeddedPostgres) -> None:
    assert ask(running.dsn, "SHOW listen_addresses") == ""


def test_given_port_is_served_on_loopback_only(data_dir: Path, unused_tcp_port: int) -> None:
    with embedded(data_dir, port=unused_tcp_port) as postgres:
        assert ask(postgres.dsn, "SHOW listen_addresses") == "127.0.0.1"
        password = (data_dir / "password").read_text()
        dsn = f"postgresql://laneway:{password}@127.0.0.1:{unused_tcp_port}/laneway"
        assert ask(dsn, "SELECT 1") == 1
        with pytest.raises(ConfigError, match="already runs with port"):
            embedded(data_dir, port=unused_tcp_port + 1).start()
        assert postgres.is_running


@pytest.mark.parametrize("name", ["x" * 150, "with space, comma & 'quote' %41 é"])
def test_path_that_no_socket_can_have_still_works(new_dir: Path, name: str) -> None:
    new_dir.mkdir()
    new_dir.chmod(0o711)
    with embedded(new_dir / name) as postgres:
        assert ask(postgres.dsn, "SELECT 1") == 1
        socket_dir = socket_dir_of(postgres)
        assert stat.S_IMODE(socket_dir.stat().st_mode) == 0o700
    socket_dir.rmdir()


def test_socket_directory_that_others_could_change_is_refused(new_dir: Path) -> None:
    new_dir.mkdir()
    new_dir.chmod(0o711)
    with embedded(new_dir / ("x" * 150)) as postgres:
        socket_dir = socket_dir_of(postgres)
    socket_dir.chmod(0o777)
    try:
        with pytest.raises(ConfigError, match="not a private directory"):
            postgres.start()
    finally:
        socket_dir.rmdir()


def test_cluster_that_we_did_not_make_is_left_alone(new_dir: Path) -> None:
    foreign = new_dir / "pgdata"
    foreign.mkdir(parents=True)
    new_dir.chmod(0o711)
    (foreign / "PG_VERSION").write_text("18\n")
    with pytest.raises(ConfigError, match=r"not made by Laneway|belongs to another user"):
        embedded(new_dir).start()
    assert [path.name for path in foreign.iterdir()] == ["PG_VERSION"]


def test_cluster_of_another_major_version_is_refused(data_dir: Path) -> None:
    with embedded(data_dir) as postgres:
        pass
    (data_dir / "pgdata" / "PG_VERSION").write_text("9\n")
    with pytest.raises(ConfigError, match="made by PostgreSQL 9"):
        postgres.start()


def test_server_that_cannot_start_reports_reason(data_dir: Path) -> None:
    with pytest.raises(DatabaseUnavailable, match="shared_buffers"):
        EmbeddedPostgres(data_dir, settings={"fsync": "off", "shared_buffers": "lots"}).start()
    assert not _guardians(data_dir)


def _guardians(data_dir: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            command = process.cmdline()
        except psutil.Error:
            continue
        if guardian.__file__ in command and str(data_dir) in command:
            found.append(process)
    return found
