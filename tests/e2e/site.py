"""Everything a journey runs against: a database, a server, a worker, people and their requests."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import psycopg

from tests.e2e import waits
from tests.e2e.accounts import Account, Accounts
from tests.e2e.app import Steps
from tests.e2e.processes import ServerProgram, WorkerProgram

Json = dict[str, Any]
WORKER = "north"


class Api:
    """Requests to a server with the token of one person."""

    def __init__(self, url: str, account: Account) -> None:
        headers = {"Authorization": f"Bearer {account.token}"}
        self._client = httpx2.Client(base_url=url, headers=headers, timeout=30)

    def close(self) -> None:
        self._client.close()

    def send(self, method: str, path: str, body: object = None) -> Any:
        """Send a request that must succeed; return what it answers."""
        response = self._client.request(method, path, json=body)
        assert response.is_success, f"{method} {path}: {response.status_code} {response.text}"
        return response.json() if response.content else None

    def get(self, path: str) -> Any:
        return self.send("GET", path)

    def submit(self, job_type: str, payload: Json, **fields: object) -> str:
        """Submit a job; return its id."""
        sent = {"job_type": job_type, "payload": payload, **fields}
        return str(self.send("POST", "/jobs", sent)["id"])

    def status(self, job_id: str) -> str:
        return str(self.get(f"/jobs/{job_id}")["status"])

    def await_status(self, job_id: str, status: str) -> None:
        waits.until(lambda: self.status(job_id) == status)


class Site:
    """One server and one worker on one database."""

    def __init__(self, dsn: str, folder: Path, server: ServerProgram) -> None:
        self.dsn = dsn
        self.folder = folder
        self.server = server
        self.url = server.url
        self.steps = Steps(folder)
        self.conn = psycopg.connect(dsn, autocommit=True, application_name="tests")
        self.accounts = Accounts(self.conn)
        self.api = Api(self.url, self.accounts.of("platform_admin"))

    def close(self) -> None:
        self.api.close()
        self.conn.close()

    def has_worker(self) -> bool:
        workers = self.api.get("/admin/workers/status")["workers"]
        return any(each["name"] == WORKER for each in workers)

    def link(self, role: str, url: str = "") -> str:
        """A one-time link of the person with this role."""
        return self.accounts.link(self.accounts.of(role), url or self.url)

    def another_server(self, **variables: str) -> ServerProgram:
        """A second server on the same database, not started yet."""
        return ServerProgram(self.dsn, self.folder, 0, **variables)


def new_key(noun: str = "key") -> str:
    """A name that no other journey uses."""
    return f"{noun}-{uuid4().hex[:8]}"


@contextmanager
def run_site(dsn: str, **variables: str) -> Iterator[Site]:
    """Run a server and a worker on a migrated database until the block ends."""
    with tempfile.TemporaryDirectory(prefix="laneway-e2e-") as name:
        folder = Path(name)
        server = ServerProgram(dsn, folder, 0, **variables)
        with server, WorkerProgram(dsn, folder, "--name", WORKER, **variables):
            site = Site(dsn, folder, server)
            try:
                waits.until(site.has_worker)
                yield site
            finally:
                site.close()
