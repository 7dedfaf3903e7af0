"""`laneway server` alone delivers to webhooks: no worker is needed for that."""

from __future__ import annotations

import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from laneway.domain.webhook import Webhook, new_secret
from laneway.store import webhooks
from tests.cli.test_server import started
from tests.support.store_client import StoreClient

PATIENCE_S = 60.0


class Received(BaseHTTPRequestHandler):
    """Accepts every request."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.server.ids.append(self.headers["webhook-id"])  # type: ignore[attr-defined]
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Do nothing."""


@pytest.fixture
def receiver() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Received) as server:
        server.ids = []  # type: ignore[attr-defined]
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize("grpc", [(), ("--grpc", "--grpc-port", "0")])
def test_server_alone_delivers_without_leading(
    dsn: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    receiver: ThreadingHTTPServer,
    grpc: tuple[str, ...],
) -> None:
    monkeypatch.setenv("LANEWAY_WEBHOOK_ALLOW", "127.0.0.1")
    monkeypatch.setenv("LANEWAY_SERVER_LEADS", "false")
    url = f"http://127.0.0.1:{receiver.server_port}/"
    with StoreClient(dsn) as backend, started(dsn, "server", *grpc, cwd=tmp_path) as (process, _):
        assert backend.run(webhooks.create(Webhook("erp", url), new_secret(), "ann"))
        backend.cancel(backend.submit())
        status = "select id::text, status from laneway.jobs_view where job_type = 'laneway.webhook'"
        deadline = time.monotonic() + PATIENCE_S
        while (found := backend.rows(status))[0][1] != "completed":
            assert time.monotonic() < deadline, found
            time.sleep(0.05)
        assert receiver.ids == [found[0][0]]  # type: ignore[attr-defined]
        process.terminate()
        assert process.wait(100) == 0
        # The worker of the server has left, and never became leader.
        workers = "select job_types, stopped_at is not null from laneway.workers where name like %s"
        assert backend.rows(workers, "% webhooks") == [(["laneway.webhook"], True)]
        assert backend.rows("select holder from laneway.leader") == []
