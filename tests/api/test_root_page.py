"""The page at the root, also where the API is mounted under a prefix."""

from __future__ import annotations

import httpx2
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount


@pytest.mark.parametrize("prefix", ["", "/laneway"])
async def test_root_page_states_that_dashboard_is_missing(app: FastAPI, prefix: str) -> None:
    outer = Starlette(routes=[Mount(prefix, app)]) if prefix else app
    transport = httpx2.ASGITransport(outer)
    async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
        root = await client.get(f"{prefix}/")
        assert (root.status_code, root.headers["location"]) == (307, f"{prefix}/ui/")
        page = await client.get(root.headers["location"])
        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/html")
        assert "no dashboard yet" in page.text
        docs = page.url.join("../docs")
        assert docs.path == f"{prefix}/docs"
        assert (await client.get(docs)).status_code == 401
        assert (await client.get(f"{prefix}/ui")).status_code == 404
