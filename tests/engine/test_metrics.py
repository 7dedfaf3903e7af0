"""The metrics of a worker process, and how they are served."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from laneway import Cancel, Context, Snooze
from laneway.app.worker_process import run_worker
from laneway.config.settings import Settings
from laneway.errors import ConfigError
from laneway.observability.counters import PROCESS, Counters
from laneway.observability.metrics_endpoint import check_host, served
from tests.support.worker_command import WorkerCommand
from tests.support.worker_harness import SOON, WorkerHarness, wait_until


def figures(page: str) -> dict[tuple[str, frozenset[str]], float]:
    """Every value by the name and the label values it has."""
    return {
        (sample.name, frozenset(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def read(port: int, query: str = "") -> dict[tuple[str, frozenset[str]], float]:
    with urlopen(f"http://127.0.0.1:{port}/metrics{query}", timeout=60) as answer:
        return figures(answer.read().decode())


@pytest.fixture
def tally() -> None:
    """As in a process that has just begun."""
    Counters.__init__(PROCESS)


async def test_each_attempt_is_counted_by_its_outcome(harness: WorkerHarness, tally: None) -> None:
    @harness.lw.handler("job", retry=SOON, max_retries=1)
    async def job(ctx: Context, how: str) -> None:
        match how:
            case "fail":
                raise ValueError("no")
            case "snooze" if ctx.attempt == 1:
                raise Snooze(0.0)
            case "cancel":
                raise Cancel("no need")

    with served(0, "127.0.0.1") as port:
        await harness.start_worker()
        jobs = [await job.submit(how=how) for how in ("return", "fail", "snooze", "cancel")]
        for each in jobs:
            await harness.ended(each)
        await wait_until(lambda: not PROCESS.running["default"])
        samples = await asyncio.to_thread(read, port)

    def ends(outcome: str) -> float:
        return samples["laneway_outcomes_total", frozenset({"default", "job", outcome})]

    counted = [ends(each) for each in ("completed", "retried", "failed", "snoozed", "cancelled")]
    assert counted == [2, 1, 1, 1, 1]
    assert samples["laneway_claims_total", frozenset({"default"})] == 6
    assert samples["laneway_running", frozenset({"default"})] == 0
    assert samples["laneway_job_duration_seconds_count", frozenset({"job"})] == 6
    # Only how long they waited for their first claim is known.
    assert samples["laneway_job_wait_seconds_count", frozenset({"default"})] == 4
    assert samples["laneway_pool_size", frozenset({"claim"})] == 1
    assert samples["laneway_is_leader", frozenset()] == 1
    assert samples["laneway_leader_epoch", frozenset()] == 1


async def test_superseded_attempt_and_its_lapse_are_counted(
    make_harness: Callable[..., WorkerHarness], tally: None
) -> None:
    harness = make_harness(heartbeat_fraction=0.9)
    harness.lane("default", lease_seconds=60)
    go_on = asyncio.Event()

    @harness.lw.handler("slow", max_retries=0)
    async def slow(ctx: Context) -> None:
        await go_on.wait()

    await harness.start_worker()
    job = await slow.submit()
    await harness.running(job)
    harness.lapse(job)
    await harness.ended(job)
    go_on.set()
    await wait_until(lambda: PROCESS.fenced["settle"])
    assert (PROCESS.lapses, PROCESS.running["default"]) == (1, 0)
    assert PROCESS.outcomes["default", "slow", "fenced"] == 1


async def test_stopped_worker_leads_no_more_and_holds_nothing(
    harness: WorkerHarness, tally: None
) -> None:
    begun = asyncio.Event()

    @harness.lw.handler("stuck")
    async def stuck(ctx: Context) -> None:
        begun.set()
        await asyncio.Event().wait()

    worker = await harness.start_worker()
    await stuck.submit()
    await begun.wait()
    await wait_until(lambda: PROCESS.epochs)
    await worker.stop(0.0)
    assert (PROCESS.epochs, PROCESS.running["default"]) == ({}, 0)
    assert PROCESS.outcomes["default", "stuck", "released"] == 1


def two_ports() -> int:
    """A port that is free, and so is the next."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as one:
            port: int = one.getsockname()[1]
            with suppress(OSError, OverflowError), socket.create_server(("127.0.0.1", port + 1)):
                return port


async def test_every_process_has_its_own_port(harness: WorkerHarness) -> None:
    port = two_ports()
    with WorkerCommand(harness.dsn, "--processes=2", f"--metrics-port={port}") as command:
        await wait_until(lambda: len(command.of("laneway worker")) == 2)
        for each in (port, port + 1):

            async def is_told(at: int = each) -> bool:
                try:
                    samples = await asyncio.to_thread(read, at)
                except OSError:
                    return False
                return ("laneway_lapses_total", frozenset()) in samples

            await wait_until(is_told)
        await wait_until(command.terminate_again)


def test_reader_may_ask_for_some_metrics_only() -> None:
    with served(0, "127.0.0.1", Counters()) as port:
        assert read(port, "?name[]=laneway_lapses_total") == {
            ("laneway_lapses_total", frozenset()): 0
        }


def test_taken_port_is_reported_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = f"metrics_port: cannot listen on 127.0.0.1:{port}"
        with pytest.raises(ConfigError, match=message), served(port, "127.0.0.1"):
            pass


def test_request_without_the_token_gets_no_metrics() -> None:
    token = "a token of sixteen characters"
    with served(0, "127.0.0.1", Counters(), token=token) as port:
        for header in (None, "Bearer ", f"Bearer {token}x", token, "Bearer \xe9"):
            request = Request(f"http://127.0.0.1:{port}/metrics")
            if header is not None:
                request.add_header("Authorization", header)
            with pytest.raises(HTTPError) as refused:
                urlopen(request, timeout=60)  # noqa: S310
            with refused.value as answer:
                assert (answer.status, answer.read()) == (401, b"")
        request.add_header("Authorization", f"Bearer {token}")
        with urlopen(request, timeout=60) as answer:  # noqa: S310
            assert ("laneway_lapses_total", frozenset()) in figures(answer.read().decode())


def test_metrics_off_loopback_need_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "openly.py").write_text("from laneway import Laneway\n\nlw = Laneway()\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("LANEWAY_DATABASE_URL", "postgresql://nowhere/nothing")
    for host in ("0.0.0.0", "::", "worker-1"):  # noqa: S104 - to be refused
        monkeypatch.setenv("LANEWAY_METRICS_HOST", host)
        monkeypatch.delitem(sys.modules, "openly", raising=False)
        for processes in (None, 2):
            with pytest.raises(ConfigError, match="set LANEWAY_METRICS_TOKEN"):
                run_worker("openly:lw", metrics_port=0, processes=processes)
    settings = Settings.load(metrics_host="0.0.0.0", metrics_port=0, metrics_token="x" * 16)  # noqa: S104
    check_host(settings)
    assert "x" * 16 not in repr(settings)


@pytest.mark.parametrize(
    "token", ["with a blank in it", "ends-in-a-new-line\n", "näher-am-ende-16"]
)
def test_token_that_no_request_can_bear_is_refused(token: str) -> None:
    with pytest.raises(ConfigError, match="metrics_token: must be visible ASCII") as refused:
        check_host(Settings.load(metrics_port=0, metrics_token=token))
    assert token.strip() not in str(refused.value)


async def test_process_whose_port_is_taken_works_without_metrics(harness: WorkerHarness) -> None:
    port = two_ports()
    with (
        socket.create_server(("127.0.0.1", port + 1)),
        WorkerCommand(harness.dsn, "--processes=2", f"--metrics-port={port}") as command,
    ):
        await wait_until(lambda: harness.one("select count(*) = 2 from laneway.workers"))
        assert len(command.of("laneway worker")) == 2
        assert ("laneway_lapses_total", frozenset()) in await asyncio.to_thread(read, port)
        await wait_until(command.terminate_again)
