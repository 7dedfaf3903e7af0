"""The client without an event loop."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from laneway.client import Client, SyncJobHandle
from laneway.domain.states import Status
from laneway.errors import InvalidInput, JobFailed, NotFound, Refused
from laneway.store.database import Database
from tests.support.store_client import StoreClient


def test_every_verb_is_a_plain_call(plain_client: Client, db: StoreClient) -> None:
    sync = plain_client.sync
    job = sync.submit("t", {"n": 1}, priority=3)
    assert isinstance(job, SyncJobHandle)
    assert job.get().priority == 3
    (claim,) = db.claimed()
    db.settle(claim, "finish", result="[1]")
    assert job.wait(timeout=60) == [1]
    assert sync.wait(job.id, 20) == [1]
    with pytest.raises(Refused, match="completed"):
        job.cancel()
    one, two = sync.submit_many([("t", {"n": 2}), ("t", {"n": 3})])
    assert one.cancel("no") is Status.CANCELLED
    assert sync.cancel(two.id) is Status.CANCELLED
    with pytest.raises(JobFailed):
        two.wait(60)
    assert sync.get(str(one.id)).status is Status.CANCELLED


def test_errors_are_raised_to_caller(plain_client: Client) -> None:
    with pytest.raises(InvalidInput, match="NUL"):
        plain_client.sync.submit("t", "\x00")
    with pytest.raises(NotFound):
        plain_client.sync.get("0" * 32)
    job = plain_client.sync.submit("t")
    with pytest.raises(TimeoutError):
        job.wait(timeout=0.01)
    with pytest.raises(InvalidInput, match="priorities: is not an option of submit"):
        plain_client.sync.submit("t", priorities=4)  # type: ignore[call-arg]


def test_many_threads_share_one_background_thread(plain_client: Client, db: StoreClient) -> None:
    with ThreadPoolExecutor(8) as pool:
        jobs = list(pool.map(lambda n: plain_client.sync.submit("t", {"n": n}), range(80)))
    assert len({job.id for job in jobs}) == 80
    assert db.one("select count(*) from laneway.jobs") == 80
    ours = [thread for thread in threading.enumerate() if thread.name == "laneway sync"]
    assert len(ours) == 1
    assert ours[0].daemon


async def test_it_works_inside_a_running_event_loop(client: Client, db: StoreClient) -> None:
    job = client.sync.submit("t")
    assert client.sync.get(job.id).status is Status.APPROVED
    assert (await client.get(job.id)).status is Status.APPROVED


def test_call_after_close_starts_again(plain_client: Client, db: StoreClient) -> None:
    plain_client.sync.submit("t")
    plain_client.sync.close()
    plain_client.sync.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "laneway sync"]
    plain_client.sync.submit("t")
    assert db.one("select count(*) from laneway.jobs") == 2


async def test_closing_the_client_closes_its_sync_side(client: Client) -> None:
    client.sync.submit("t")
    await client.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "laneway sync"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_child_has_a_background_thread_of_its_own(
    plain_client: Client, db: StoreClient
) -> None:
    before = plain_client.sync.submit("t", {"who": "parent"})
    child = os.fork()
    if child == 0:
        code = 1
        try:
            plain_client.sync.submit("t", {"who": "child"})
            plain_client.sync.close()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    after = plain_client.sync.submit("t", {"who": "parent"})
    assert before.get().status is after.get().status is Status.APPROVED
    assert db.one("select count(*) from laneway.jobs") == 3


PROGRAM = """
import os, sys, threading
from laneway.client import Client
from laneway.config.settings import Settings
from laneway.store.database import Database

settings = Settings.load(database_url=sys.argv[1])
client = Client(Database(sys.argv[1], settings), settings)
client.sync.submit("t")
if "fork" in sys.argv:
    child = os.fork()
    client.sync.submit("t")
    if child:
        os.waitpid(child, 0)
        client.sync.submit("t")
if "waiting" in sys.argv:
    threading.Thread(target=lambda: client.sync.submit("t").wait(60), daemon=True).start()
"""


@pytest.mark.parametrize("how", [[], ["fork"], ["waiting"]])
def test_program_that_just_ends_ends_without_noise(dsn: str, how: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", PROGRAM, dsn, *how],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    # On a busy machine callbacks may be slow.
    noise = [line for line in done.stderr.splitlines() if not line.startswith("Executing <")]
    assert (done.returncode, done.stdout, noise) == (0, "", [])


def test_interrupted_wait_is_given_up(plain_client: Client, monkeypatch: Any) -> None:
    job = plain_client.sync.submit("t")
    import concurrent.futures

    def interrupted(self: Any, timeout: float | None = None) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(concurrent.futures.Future, "result", interrupted)
        with pytest.raises(KeyboardInterrupt):
            job.wait()

    async def tasks(_database: Database) -> int:
        import asyncio

        return len([task for task in asyncio.all_tasks() if "Client.wait" in repr(task)])

    deadline = time.monotonic() + 60
    while plain_client.sync.operate(tasks):
        assert time.monotonic() < deadline, "it still waits"
