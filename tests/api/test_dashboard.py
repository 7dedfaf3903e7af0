"""The dashboard's files: caching, prefixes, deep links, and nothing outside of the bundle."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from urllib.parse import unquote, urljoin

import httpx2
import pytest
from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from laneway.api.routes.dashboard import Bundle
from tests.api.prefixes import WAYS, served_under

INDEX = (
    '<!doctype html><link rel="icon" href="./icon.svg">'
    '<link rel="stylesheet" crossorigin href="./assets/index-B2.css">'
    '<script type="module" crossorigin src="./assets/index-A1.js"></script>'
)
SCRIPT = b"console.log('laneway');" * 100
IMMUTABLE = "public, max-age=31536000, immutable"
PAGES = (
    "",
    "lanes",
    "lanes/",
    "jobs/0190",
    "lanes/a%2Fb",
    "lanes/ui%2Fui/history",
    "settings/tokens",
    "%C3%BC/b",
    "ui/ui/ui",
    "jobs?status=failed&q=a/b",
)
HOSTILE = (
    "assets/../index.html",
    "assets/..%2f..%2fapp.py",
    "assets/%2e%2e/%2e%2e/app.py",
    "assets/..%5c..%5capp.py",
    "assets/....//....//app.py",
    "assets/%2fetc%2fpasswd",
    "assets//etc/passwd",
    "assets/%252e%252e%252fapp.py",
    "assets/..%c0%af..%c0%afapp.py",
    "assets/index-A1.js%00.css",
    "assets/.hidden.js",
    "assets/sub/inner.js",
    "assets/sub",
    "assets/",
    "assets/index-A1.js/",
    "assets/index-A1.js.gz",
    "assets/secret.key",
    "assets/index-A1.py",
    "assets/missing-C3.js",
    "assets/~root.js",
    "assets/" + "a" * 300 + ".js",
)


@pytest.fixture
def bundle(app: FastAPI, tmp_path: Path) -> Path:
    folder = tmp_path / "static"
    (folder / "assets" / "sub").mkdir(parents=True)
    (folder / "index.html").write_text(INDEX)
    (folder / "icon.svg").write_text("<svg/>")
    (folder / "assets" / "index-A1.js").write_bytes(SCRIPT)
    (folder / "assets" / "index-A1.js.gz").write_bytes(gzip.compress(SCRIPT))
    (folder / "assets" / "index-B2.css").write_text("body{}")
    for name in ("assets/secret.key", "assets/.hidden.js", "assets/sub/inner.js", "../app.py"):
        (folder / name).write_text("outside of the bundle")
    app.state.bundle = Bundle(folder)
    return folder


def client(app: ASGIApp) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://test")


@pytest.mark.parametrize("how", WAYS)
async def test_every_page_finds_its_files_under_every_prefix(
    app: FastAPI, bundle: Path, how: str
) -> None:
    outer, prefix = served_under(app, how)
    async with client(outer) as browser:
        for start in (f"{prefix}/", f"{prefix}/ui"):
            found = await browser.get(start)
            assert found.status_code == 307
            assert urljoin(start, found.headers["location"]) == f"{prefix}/ui/"
        for page in PAGES:
            address = f"{prefix}/ui/{page}"
            shown = await browser.get(address)
            assert shown.status_code == 200, address
            assert shown.headers["content-type"] == "text/html; charset=utf-8"
            assert shown.headers["cache-control"] == "no-store"
            links = re.findall(r'(?:href|src)="([^"]+)"', shown.text)
            assert {urljoin(address, link) for link in links} == {
                f"{prefix}/ui/{name}"
                for name in ("icon.svg", "assets/index-B2.css", "assets/index-A1.js")
            }, address
            for link in links:
                assert (await browser.get(urljoin(address, link))).status_code == 200, address


async def test_assets_are_cached_forever_and_compressed_on_request(
    app: FastAPI, bundle: Path
) -> None:
    async with client(app) as browser:
        for accepted, encoding in (
            ("gzip, deflate, br", "gzip"),
            ("br;q=1.0, GZIP;q=0.5", "gzip"),
            ("gzip;q=0", None),
            ("gzip; q=0.000, br", None),
            ("identity", None),
        ):
            script = await browser.get(
                "/ui/assets/index-A1.js", headers={"Accept-Encoding": accepted}
            )
            assert (script.status_code, script.content) == (200, SCRIPT)
            assert script.headers.get("content-encoding") == encoding, accepted
            assert script.headers["vary"] == "Accept-Encoding"
            assert script.headers["cache-control"] == IMMUTABLE
            assert script.headers["content-type"] == "text/javascript; charset=utf-8"
        style = await browser.get("/ui/assets/index-B2.css")
        assert style.headers["content-type"] == "text/css; charset=utf-8"
        assert "vary" not in style.headers
        icon = await browser.get("/ui/icon.svg")
        assert icon.headers["content-type"] == "image/svg+xml"
        assert icon.headers["cache-control"] == "public, max-age=3600"


async def test_dashboard_files_have_the_security_headers(app: FastAPI, bundle: Path) -> None:
    async with client(app) as browser:
        for path in ("/ui/", "/ui/jobs/1", "/ui/assets/index-A1.js", "/ui/assets/missing.js"):
            headers = (await browser.get(path)).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["content-security-policy"].startswith("default-src 'self';")


async def test_pages_have_neither_inline_scripts_nor_styles(app: FastAPI, bundle: Path) -> None:
    app.state.bundle = Bundle()
    async with client(app) as browser:
        page = (await browser.get("/ui/")).text
    assert re.findall(r"<style|<script(?![^>]*\ssrc=)|\son\w+=|\sstyle=|data:", page) == []


async def test_head_returns_the_headers_of_get(app: FastAPI, bundle: Path) -> None:
    async with client(app) as browser:
        for path in ("/ui/", "/ui/jobs/1", "/ui/assets/index-A1.js", "/ui/icon.svg"):
            whole, head = await browser.get(path), await browser.head(path)
            assert (head.status_code, head.content) == (200, b"")
            for name in ("content-type", "content-length", "cache-control"):
                assert head.headers[name] == whole.headers[name], path
        assert (await browser.head("/ui/assets/missing.js")).status_code == 404
        root = await browser.head("/")
        assert (root.status_code, root.headers["location"], root.content) == (307, "ui/", b"")


@pytest.mark.parametrize("path", HOSTILE)
async def test_only_files_of_the_bundle_are_served(app: FastAPI, bundle: Path, path: str) -> None:
    async def as_sent(scope: Scope, receive: Receive, send: Send) -> None:
        # The client resolves dots; a raw socket does not.
        raw = f"/ui/{path}"
        await app({**scope, "path": unquote(raw), "raw_path": raw.encode()}, receive, send)

    async with client(as_sent) as browser:
        found = await browser.get("/")
        assert found.status_code == 404, found.text
        assert found.headers["content-type"] == "application/problem+json"
        assert "outside" not in found.text


async def test_very_deep_path_is_not_found(app: FastAPI, bundle: Path) -> None:
    async with client(app) as browser:
        assert (await browser.get("/ui/" + "a/" * 8)).status_code == 200
        assert (await browser.get("/ui/" + "a/" * 9)).status_code == 404
        assert (await browser.get("/ui/" + "a%2F" * 9)).status_code == 200


async def test_new_build_is_served_without_a_restart(app: FastAPI, bundle: Path) -> None:
    async with client(app) as browser:
        assert "index-A1.js" in (await browser.get("/ui/")).text
        (bundle / "index.html").write_text(INDEX.replace("A1", "A2"))
        assert "index-A2.js" in (await browser.get("/ui/")).text


@pytest.mark.parametrize("how", ["root", "mounted", "proxied"])
async def test_missing_bundle_is_reported_with_the_command_to_build_it(
    app: FastAPI, tmp_path: Path, how: str
) -> None:
    app.state.bundle = Bundle(tmp_path / "nothing")
    outer, prefix = served_under(app, how)
    async with client(outer) as browser:
        for page in ("", "jobs/1"):
            address = f"{prefix}/ui/{page}"
            shown = await browser.get(address)
            assert (shown.status_code, "scripts/dashboard.sh build" in shown.text) == (200, True)
            [link] = re.findall(r'href="([^"]+)"', shown.text)
            assert urljoin(address, link) == f"{prefix}/docs"
        assert (await browser.get(f"{prefix}/ui/assets/index-A1.js")).status_code == 404
