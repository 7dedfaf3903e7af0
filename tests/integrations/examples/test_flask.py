"""The example of Flask: requests submit jobs, and a thread of each process runs them."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from tests.integrations.examples.programs import Environment, client_of, free_port, until

pytestmark = pytest.mark.integration


def test_requests_submit_and_a_thread_works(dsn: str, tmp_path: Path) -> None:
    shop = Environment("flask", "flask", tmp_path, LANEWAY_DATABASE_URL=dsn)
    port = free_port()
    serve = ("-m", "gunicorn", "--workers=2", "--threads=4", f"--bind=127.0.0.1:{port}", "wsgi:app")
    with shop.start(*serve) as program, client_of(program, port) as client:
        mail = client.post("/orders/7")
        assert mail.status_code == 202
        assert client.get(f"/mails/{mail.json()}").json() == "mail for order 7"

        wrong = client.get("/mails/abc")
        assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (422, "id")
        assert wrong.headers["content-type"] == "application/problem+json"
        missing = client.get(f"/mails/{UUID(int=7)}")
        assert (missing.status_code, missing.json()["code"]) == (404, "not_found")

        with psycopg.connect(dsn, autocommit=True, application_name="tests") as conn:
            # Each process of the server is a worker.
            live = "select count(*) from laneway.workers"
            assert until(lambda: conn.execute(live).fetchone() == (2,))
            slow = client.post("/slow-orders/8").json()
            status = "select status from laneway.jobs_view where id = %s"
            assert until(lambda: conn.execute(status, [slow]).fetchone() == ("running",))
            # The server ends its requests, and then the worker its job.
            assert program.stop() == 0, program.output
            ended = "select status, result, attempt from laneway.jobs_view where id = %s"
            assert conn.execute(ended, [slow]).fetchone() == ("completed", "mail for order 8", 1)


def test_imports_start_no_worker(dsn: str, tmp_path: Path) -> None:
    shop = Environment("flask", "flask", tmp_path, LANEWAY_DATABASE_URL=dsn)
    shop.run("-m", "flask", "--app", "shop", "routes")
    with psycopg.connect(dsn, application_name="tests") as conn:
        assert conn.execute("select count(*) from laneway.workers").fetchone() == (0,)
