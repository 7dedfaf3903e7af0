"""Deliveries to webhooks: the request, its signature, retries, refusals, and crashes."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import socket
import ssl
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from laneway import Context, Laneway, PublicError
from laneway.app.webhook_worker import WebhookService
from laneway.config.settings import Settings
from laneway.control import explain, job_type_health
from laneway.domain.job import Job
from laneway.domain.lane import Lane
from laneway.engine.webhook import http_post
from laneway.errors import ConfigError, InvalidInput
from laneway.store.lanes import ControlState
from tests.rpc.certificates import make_certificate
from tests.support.receiver import Received, Receiver, response
from tests.support.worker_command import WorkerCommand
from tests.support.worker_harness import WorkerHarness, wait_until

APP = "tests.engine.hook_handlers:lw"
DELIVERIES = "select id from laneway.jobs where job_type = 'laneway.webhook' order by seq"


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver() as made:
        yield made


@pytest.fixture
def local(make_harness: Callable[..., WorkerHarness]) -> WorkerHarness:
    """Workers that may send to loopback."""
    return make_harness(webhook_allow=("127.0.0.1", "localhost"))


async def create(harness: WorkerHarness, url: str, **settings: Any) -> str:
    saved = await harness.lw.webhooks.set("erp", url=url, **settings)
    return str(saved.secret)


async def end_one(harness: WorkerHarness, **more: Any) -> UUID:
    """Cancel a new job."""
    job = await harness.lw.submit("ingest", {"path": "a.pdf"}, **more)
    await job.cancel()
    return job.id


async def delivered(harness: WorkerHarness, n: int = 1) -> list[Job]:
    """The deliveries once so many have ended."""

    async def ended() -> list[Job]:
        jobs = [await harness.lw.jobs.get(job_id) for (job_id,) in harness.rows(DELIVERIES)]
        return [job for job in jobs if job.status in ("completed", "failed", "cancelled")]

    return list(await wait_until(lambda: _at_least(n, ended())))


async def _at_least(n: int, found: Any) -> list[Job] | None:
    jobs = await found
    return jobs if len(jobs) >= n else None


def is_signed(request: Received, secret: str) -> bool:
    """As a receiver checks it."""
    headers = request.headers
    key = b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + request.body
    expected = "v1," + b64encode(hmac.digest(key, signed, "sha256")).decode()
    return expected in headers["webhook-signature"].split(" ")


# -- the request -------------------------------------------------------------------------------


async def test_end_is_sent_signed_with_the_ended_job(
    local: WorkerHarness, receiver: Receiver
) -> None:
    @local.lw.handler("ingest", max_retries=0)
    async def ingest(ctx: Context, path: str) -> None:
        raise PublicError(f"{path} is empty") if path == "a.pdf" else ValueError("private")

    secret = await create(local, receiver.url)
    await local.start_worker()
    before = int(time.time())
    first = await local.lw.submit("ingest", {"path": "a.pdf"}, tags=["night"])
    await wait_until(lambda: receiver.received)
    (request,) = receiver.received
    (job,) = await delivered(local)
    assert (job.status, job.lane, job.tags[0]) == ("completed", "webhooks", "webhook:erp")
    assert isinstance(job.result, dict)
    assert job.result["status"] == 204
    assert request.path == "/hook?tenant=7"
    assert request.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["webhook-id"] == str(job.id)
    assert before <= int(request.headers["webhook-timestamp"]) <= time.time()
    assert is_signed(request, secret)
    assert not is_signed(request, "whsec_" + "A" * 32)
    body = request.json
    assert list(body) == ["type", "timestamp", "data"]
    assert (body["type"], body["timestamp"]) == ("job.failed", body["data"]["finished_at"])
    assert body["data"]["id"] == str(first.id)
    assert body["data"]["tags"] == ["night"]
    assert body["data"]["error"] == {"type": "PublicError", "message": "a.pdf is empty"}
    await local.lw.submit("ingest", {"path": "b.pdf"})
    await wait_until(lambda: len(receiver.received) == 2)
    assert receiver.received[1].json["data"]["error"] == {"type": "ValueError", "message": None}
    assert b"private" not in receiver.received[1].body


async def test_webhook_made_while_workers_run_is_served_by_them(
    local: WorkerHarness, receiver: Receiver
) -> None:
    worker = await local.start_worker()
    assert worker.internal == {}
    await create(local, receiver.url)
    await end_one(local)
    await wait_until(lambda: receiver.received)
    served = local.one("select job_types from laneway.workers where id = %s", worker.id)
    assert served == ["laneway.webhook"]
    assert len(local.lw.handlers) == 0


async def test_changed_secret_signs_beside_the_old_one(
    local: WorkerHarness, receiver: Receiver
) -> None:
    old = await create(local, receiver.url)
    new = (await local.lw.webhooks.rotate("erp")).secret
    await local.start_worker()
    await end_one(local)
    await wait_until(lambda: receiver.received)
    assert new is not None
    assert is_signed(receiver.received[0], old)
    assert is_signed(receiver.received[0], new)


async def test_middleware_of_the_application_is_not_around_deliveries(
    local: WorkerHarness, receiver: Receiver
) -> None:
    @local.lw.middleware
    async def refuse(ctx: Context, call_next: Any) -> Any:
        raise RuntimeError("not for deliveries")

    await create(local, receiver.url)
    await local.start_worker()
    await end_one(local)
    (job,) = await delivered(local)
    assert job.status == "completed"


async def test_test_event_is_sent_once_even_if_disabled(
    local: WorkerHarness, receiver: Receiver
) -> None:
    receiver.responses = [response(500)]
    secret = await create(local, receiver.url, enabled=False)
    await local.start_worker()
    job_id = await local.lw.webhooks.test("erp")
    (job,) = await delivered(local)
    assert (job.id, job.status) == (job_id, "failed")
    (request,) = receiver.received
    assert request.json["type"] == "webhook.test"
    assert request.json["data"]["job_type"] == "sample"
    assert is_signed(request, secret)


# -- failures ----------------------------------------------------------------------------------


async def run_retries(harness: WorkerHarness) -> None:
    """Make a delivery due that waits for its retry."""
    await wait_until(lambda: harness.rows("select seq from laneway.delayed"))
    (job_id,) = harness.rows(DELIVERIES)[0]
    await harness.lw.jobs.run_now(job_id)


async def test_failed_request_is_retried_with_the_same_id_and_body(
    local: WorkerHarness, receiver: Receiver
) -> None:
    receiver.responses = [response(503, "try later"), response(302, location="/other")]
    secret = await create(local, receiver.url)
    await local.start_worker()
    await end_one(local)
    await run_retries(local)
    await wait_until(lambda: len(receiver.received) == 2)
    await run_retries(local)
    (job,) = await delivered(local)
    assert (job.status, job.attempt, job.retries) == ("completed", 3, 2)
    assert {each.headers["webhook-id"] for each in receiver.received} == {str(job.id)}
    assert len({each.body for each in receiver.received}) == 1
    assert {each.path for each in receiver.received} == {"/hook?tenant=7"}
    assert all(is_signed(each, secret) for each in receiver.received)
    first, second, _ = sorted(job.attempts, key=lambda each: each.attempt)
    assert first.error is not None
    assert first.error.message == "webhook erp: the receiver responded 503"
    assert [line.message for line in first.log] == ["the receiver responded 503: try later"]
    assert second.error is not None
    assert "a redirect, which is not followed" in second.error.message


async def test_retry_by_an_operator_sends_the_same_id_again(
    local: WorkerHarness, receiver: Receiver
) -> None:
    receiver.responses = [response(400)]
    await create(local, receiver.url, max_retries=0)
    await local.start_worker()
    await end_one(local)
    (job,) = await delivered(local)
    assert job.status == "failed"
    await local.lw.jobs.retry(job.id)
    await wait_until(lambda: local.status(job.id) == "completed")
    assert [each.headers["webhook-id"] for each in receiver.received] == [str(job.id)] * 2


async def test_pause_grows_and_honours_retry_after(
    local: WorkerHarness, receiver: Receiver
) -> None:
    receiver.responses = [response(500), response(429, retry_after="7000")]
    await create(local, receiver.url)
    await local.start_worker()
    await end_one(local)
    pause = (
        "select extract(epoch from d.run_at - clock_timestamp())::float from laneway.delayed d"
        " join laneway.jobs j using (seq) where j.job_type = 'laneway.webhook'"
    )
    await wait_until(lambda: local.rows(pause))
    assert 0 < local.one(pause) <= 6
    await run_retries(local)
    await wait_until(lambda: len(receiver.received) == 2)
    await wait_until(lambda: local.rows(pause))
    assert 6000 < local.one(pause) <= 7000


async def test_receiver_that_is_gone_fails_the_delivery_at_once(
    local: WorkerHarness, receiver: Receiver
) -> None:
    receiver.responses = [response(410)]
    await create(local, receiver.url)
    await local.start_worker()
    await end_one(local)
    (job,) = await delivered(local)
    assert (job.status, job.attempt) == ("failed", 1)
    assert job.error is not None
    assert "delete the webhook" in job.error.message


async def test_silent_receiver_is_left_after_the_timeout(
    local: WorkerHarness, receiver: Receiver
) -> None:
    asked = asyncio.Event()

    async def never() -> bytes:
        asked.set()
        await asyncio.Event().wait()
        return b""

    receiver.responses = [never]
    await create(local, receiver.url, timeout_s=1, max_retries=0)
    await local.start_worker()
    await end_one(local)
    (job,) = await delivered(local)
    assert asked.is_set()
    assert job.error is not None
    assert job.error.message == "webhook erp: no response within 1 s"


@pytest.mark.parametrize(
    "answer, message",
    [
        (b"", "the connection was closed before a response"),
        (b"SSH-2.0-server\r\n\r\n", "the response is not HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 9000 + b"\r\n", "is larger than 16384 bytes"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 20, "more than 10 interim responses"),
    ],
)
async def test_broken_response_is_a_failure(
    local: WorkerHarness, receiver: Receiver, answer: bytes, message: str
) -> None:
    receiver.responses = [answer]
    await create(local, receiver.url, max_retries=0)
    await local.start_worker()
    await end_one(local)
    (job,) = await delivered(local)
    assert job.error is not None
    assert message in job.error.message


async def test_interim_responses_are_skipped_and_a_large_body_is_cut(
    local: WorkerHarness, receiver: Receiver
) -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n"
    receiver.responses = [hints + response(500, "x" * 100_000)]
    await create(local, receiver.url, max_retries=0)
    await local.start_worker()
    await end_one(local)
    (job,) = await delivered(local)
    (attempt,) = job.attempts
    assert [len(line.message) for line in attempt.log] == [
        len("the receiver responded 500: ") + 1000
    ]


# -- where requests may go ---------------------------------------------------------------------


async def test_private_addresses_get_no_request_and_the_error_names_the_cure(
    harness: WorkerHarness, receiver: Receiver
) -> None:
    await create(harness, f"https://localhost:{receiver.port}/", max_retries=0)
    await harness.lw.webhooks.set("ip", url=f"http://127.0.0.1:{receiver.port}/", max_retries=0)
    await harness.start_worker()
    await end_one(harness)
    jobs = await delivered(harness, 2)
    messages = {str(job.error.message) for job in jobs if job.error is not None}
    cure = (
        "is not a public address: set LANEWAY_WEBHOOK_ALLOW to allow the host or its network, for"
        " every worker and server that sends, and restart them"
    )
    assert messages == {f"webhook erp: localhost {cure}", f"webhook ip: 127.0.0.1 {cure}"}
    assert receiver.received == []


async def test_refused_address_is_retried_and_another_worker_delivers(
    make_harness: Callable[..., WorkerHarness], receiver: Receiver
) -> None:
    strict, local = make_harness(), make_harness(webhook_allow=("127.0.0.1",))
    await create(strict, receiver.url)
    refusing = await strict.start_worker()
    await end_one(strict)
    (job_id,) = (await wait_until(lambda: strict.rows(DELIVERIES)))[0]
    await wait_until(lambda: strict.rows("select seq from laneway.delayed"))
    job = await strict.lw.jobs.get(job_id)
    assert (job.status, job.retries, job.max_retries) == ("approved", 1, 10)
    assert receiver.received == []
    await refusing.stop(1.0)
    await local.start_worker()
    await run_retries(local)
    (job,) = await delivered(local)
    assert (job.status, job.attempt) == ("completed", 2)
    assert len(receiver.received) == 1


async def test_name_is_resolved_once_and_the_checked_address_is_used(
    local: WorkerHarness, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def resolve(host: str, port: int | None) -> list[str]:
        asked.append(host)
        # A private address at the second question, as a rebinding name server gives it.
        return ["127.0.0.1" if len(asked) == 1 else "10.0.0.1"]

    monkeypatch.setattr(http_post, "resolve", resolve)
    await create(local, f"http://rebound.example:{receiver.port}/", max_retries=0)
    await local.start_worker()
    await end_one(local)
    (job,) = await delivered(local)
    assert job.status == "completed"
    assert receiver.received[0].headers["host"] == f"rebound.example:{receiver.port}"
    assert asked == ["rebound.example"]


async def test_address_that_does_not_answer_leaves_time_for_the_next(
    local: WorkerHarness, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_post, "resolve", lambda host, port: ["127.0.0.2", "127.0.0.1"])
    monkeypatch.setattr(http_post, "CONNECT_S", 0.2)
    with contextlib.ExitStack() as sockets:
        # A full backlog: the next connection gets no answer.
        silent = socket.create_server(("127.0.0.2", receiver.port), backlog=0)
        sockets.enter_context(silent)
        for _ in range(3):
            waiting = sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(silent.getsockname())
        await create(local, f"http://localhost:{receiver.port}/", max_retries=0)
        await local.start_worker()
        await end_one(local)
        (job,) = await delivered(local)
    assert job.status == "completed"


async def test_silent_name_server_holds_up_no_threads_of_the_event_loop(
    local: WorkerHarness, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answers = threading.Event(), threading.Event()

    def resolve(host: str, port: int | None) -> list[str]:
        asked.set()
        answers.wait()
        return ["127.0.0.1"]

    monkeypatch.setattr(http_post, "resolve", resolve)
    await create(local, receiver.url)
    await local.start_worker()
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    try:
        await end_one(local)
        await wait_until(asked.is_set)
        assert await asyncio.wait_for(asyncio.to_thread(lambda: 7), 10) == 7
    finally:
        answers.set()
    await delivered(local)


async def test_http_to_a_public_address_is_refused(
    local: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(local, "http://93.184.216.34/", max_retries=0)
    await local.start_worker()
    await end_one(local)
    (job,) = await delivered(local)
    assert job.error is not None
    assert job.error.message.startswith("webhook erp: 93.184.216.34: http is not encrypted")


async def test_certificate_of_the_receiver_must_be_trusted(
    make_harness: Callable[..., WorkerHarness], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain, key = make_certificate(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(chain, key)
    local = make_harness(webhook_allow=("127.0.0.1",))
    async with Receiver(tls) as receiver:
        await create(local, receiver.url, max_retries=0)
        first = await local.start_worker()
        await end_one(local)
        (job,) = await delivered(local)
        assert job.error is not None
        assert job.error.message == (
            "webhook erp: cannot connect to 127.0.0.1: self-signed certificate"
        )
        assert receiver.received == []
        await first.stop(0.0)
        monkeypatch.setenv("SSL_CERT_FILE", str(chain))
        await local.start_worker()
        await local.lw.jobs.retry(job.id)
        await wait_until(lambda: local.status(job.id) == "completed")
        assert len(receiver.received) == 1


# -- who delivers what -------------------------------------------------------------------------


async def test_delivery_that_no_end_submitted_is_refused(
    local: WorkerHarness, receiver: Receiver
) -> None:
    await create(local, receiver.url)
    await local.start_worker()
    forged = {"webhook": "erp", "job": {"status": "completed", "finished_at": "now"}}
    with pytest.raises(InvalidInput, match="only the end of a job submits deliveries"):
        await local.lw.submit("laneway.webhook", forged, created_by="laneway")
    with pytest.raises(InvalidInput, match=r"^jobs\[1\].job_type: only the end"):
        await local.lw.submit_many([("ingest", {}), ("laneway.webhook", forged)])
    # The owner of the tables can do anything, but a server's principal is not Laneway.
    (row,) = local.rows(
        "select job_id from laneway.submit('laneway.webhook', %s, created_by => 'mallory')",
        Jsonb(forged),
    )
    await wait_until(lambda: local.status(row[0]) == "failed")
    ended = await local.lw.jobs.get(row[0])
    assert ended.status == "failed"
    assert ended.error is not None
    assert ended.error.message == "only the end of a job submits deliveries"
    assert receiver.received == []


async def test_hook_cannot_have_a_message_signed(local: WorkerHarness, receiver: Receiver) -> None:
    """Sub-jobs have the submitter of their job, and hooks are submitted by Laneway."""
    forged = {"webhook": "erp", "job": {"status": "completed", "finished_at": "now"}}

    @local.lw.on_end("ingest", max_retries=0)
    async def forge(ctx: Context, job: dict[str, Any]) -> None:
        await ctx.run_all("forged", [("laneway.webhook", forged)])

    await create(local, receiver.url, job_types=["other"])
    await local.start_worker()
    await end_one(local)
    await wait_until(lambda: local.count("failed") or receiver.received)
    assert receiver.received == []
    assert local.rows(DELIVERIES) == []


async def test_new_webhook_without_a_url_is_refused(local: WorkerHarness) -> None:
    for settings in ({}, {"enabled": False}):
        with pytest.raises(InvalidInput, match=r"^url: is required for a new webhook: there is no"):
            await local.lw.webhooks.set("erp", **settings)  # type: ignore[arg-type]
    await local.lw.webhooks.set("erp", url="https://erp.example.com/")
    with pytest.raises(InvalidInput, match="give at least one setting to change"):
        await local.lw.webhooks.set("erp")


async def test_deliveries_of_a_disabled_or_deleted_webhook_are_cancelled(
    local: WorkerHarness, receiver: Receiver
) -> None:
    await create(local, receiver.url)
    await local.lw.webhooks.set("gone", url=receiver.url)
    await end_one(local)
    await local.lw.webhooks.set("erp", enabled=False)
    await local.lw.webhooks.delete("gone")
    await local.start_worker()
    jobs = await delivered(local, 2)
    assert sorted((job.status, str(job.cancel_reason)) for job in jobs) == [
        ("cancelled", "the webhook erp is disabled"), ("cancelled", "the webhook gone was deleted"),
    ]  # fmt: skip
    assert receiver.received == []


async def test_webhook_made_again_gets_no_deliveries_of_the_deleted_one(
    local: WorkerHarness, receiver: Receiver
) -> None:
    await create(local, receiver.url)
    await end_one(local)
    await local.lw.webhooks.delete("erp")
    await create(local, receiver.url)
    after = await end_one(local)
    await local.start_worker()
    first, second = await delivered(local, 2)
    assert (first.status, second.status) == ("cancelled", "completed")
    assert first.cancel_reason == "the webhook erp was deleted, and created again since this end"
    assert [one.json["data"]["id"] for one in receiver.received] == [str(after)]


async def test_doctor_and_explain_say_that_nothing_delivers(
    local: WorkerHarness, receiver: Receiver
) -> None:
    await create(local, receiver.url)
    await local.start_worker_with({"webhooks": "off"})
    await end_one(local)
    (job_id,) = local.rows(DELIVERIES)[0]
    found = await explain.explain(local.lw.database, job_id)
    cure = "start a worker or a server, or set LANEWAY_WEBHOOKS=on where it is off"
    assert [each.message for each in found.reasons][:1] == [
        f"none of 1 live worker delivers to webhooks: {cure}"
    ]
    checked = await job_type_health.check_handlers(local.lw.database)
    assert (checked.finding, checked.next) == ("warn", cure)
    assert "no live worker or server delivers to webhooks" in checked.message
    await local.start_worker()
    (job,) = await delivered(local)
    assert job.status == "completed"


async def test_worker_of_other_lanes_does_not_deliver(local: WorkerHarness) -> None:
    await create(local, "https://example.com/")
    worker = await local.start_worker(only_lanes=["default"])
    assert worker.internal == {}
    other = await local.start_worker(only_lanes=["webhooks"])
    assert list(other.internal) == ["laneway.webhook"]
    assert set(other.loops) == {"webhooks"}


async def test_worker_that_stops_while_it_notices_a_webhook_takes_no_delivery(
    local: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = await local.start_worker()
    place = worker.registrar.place

    async def place_late(job_type: str, lane: Lane) -> ControlState:
        state = await place(job_type, lane)
        worker.is_running = False
        return state

    monkeypatch.setattr(worker.registrar, "place", place_late)
    before = set(worker.loops)
    await create(local, "https://example.com/")
    await wait_until(lambda: not worker.is_running)
    await worker.refresh()
    loops = set(worker.loops)
    worker.is_running = True
    assert loops == before


@pytest.mark.parametrize("webhooks", ["on", "off"])
async def test_server_starts_its_worker_with_the_first_webhook_unless_off(
    harness: WorkerHarness, webhooks: str
) -> None:
    settings = Settings.load(database_url=harness.dsn, webhooks=webhooks)
    service = WebhookService(harness.dsn, settings, harness.lw.database)
    await service.run_once()
    assert service.worker is None
    await create(harness, "https://example.com/")
    await service.run_once()
    try:
        assert (service.worker is not None) == (webhooks == "on")
    finally:
        await service.close(0.0)


def test_application_cannot_take_the_job_type() -> None:
    lw = Laneway("postgresql://nowhere")
    with pytest.raises(ConfigError, match="is Laneway's own, for webhooks: choose another name"):

        @lw.handler("laneway.webhook")
        async def mine(ctx: Context) -> None: ...


# -- crashes -----------------------------------------------------------------------------------


async def test_workers_killed_before_and_during_a_delivery_leave_one_message(
    harness: WorkerHarness, receiver: Receiver
) -> None:
    """The end submits one delivery; each request of it has the same id."""
    allowed = {"LANEWAY_WEBHOOK_ALLOW": "127.0.0.1"}
    secret = await create(harness, receiver.url, job_types=["plain"])
    for lane in ("default", "webhooks"):
        harness.lane(lane, lease_seconds=2, poll_interval_ms=100, max_slots=None)
    with WorkerCommand(harness.dsn, app=APP, LANEWAY_WEBHOOKS="off") as first:
        job = await harness.lw.submit("plain")
        assert await job.wait(120) == "done"
        first.kill()
    assert len(harness.rows(DELIVERIES)) == 1
    assert receiver.received == []

    async def kill_second() -> bytes:
        second.kill()
        return b""

    receiver.responses = [kill_second]
    with WorkerCommand(harness.dsn, app=APP, **allowed) as second:
        await wait_until(lambda: receiver.received)
    with WorkerCommand(harness.dsn, app=APP, **allowed):
        await wait_until(lambda: len(receiver.received) == 2)
        (delivery,) = await delivered(harness)
    assert harness.rows(DELIVERIES) == [(delivery.id,)]
    assert {each.headers["webhook-id"] for each in receiver.received} == {str(delivery.id)}
    assert len({each.body for each in receiver.received}) == 1
    assert all(is_signed(each, secret) for each in receiver.received)
    assert json.loads(receiver.received[1].body)["data"]["id"] == str(job.id)
