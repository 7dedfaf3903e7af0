"""The example of FastAPI: a worker with the application's lifespan, and the API under a prefix."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from tests.integrations.examples.programs import Environment, client_of, free_port

pytestmark = pytest.mark.integration


def test_requests_submit_and_the_lifespan_works(dsn: str, tmp_path: Path) -> None:
    shop = Environment("fastapi", "fastapi", tmp_path, LANEWAY_DATABASE_URL=dsn)
    port = free_port()
    with (
        shop.start("-m", "uvicorn", f"--port={port}", "shop:app") as program,
        client_of(program, port) as client,
    ):
        mail = client.post("/orders/7")
        assert mail.status_code == 202
        assert client.get(f"/mails/{mail.json()}").json() == "mail for order 7"
        assert client.get("/mails/abc").status_code == 422
        assert client.get(f"/mails/{UUID(int=7)}").json()["code"] == "not_found"
        assert client.get("/laneway/readyz").json()["database"] == "reached"
        assert client.get(f"/laneway/jobs/{mail.json()}").status_code == 401
        program.stop()
        assert "Application shutdown complete" in program.output
