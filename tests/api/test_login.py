"""The pages of the login, for browsers and for programs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urljoin

import httpx2
import pytest
from fastapi import FastAPI

from laneway.control import sessions
from laneway.store.database import Database
from tests.api.conftest import Ask, People
from tests.api.prefixes import WAYS, served_under
from tests.support.job_factory import JobFactory

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
STYLESHEET = Path(__file__).parents[2] / "dashboard" / "public" / "login.css"


async def new_link(database: Database) -> str:
    return await sessions.create_login_link(database, "pat", by="tests")


@pytest.fixture
def pat(people: People, factory: JobFactory) -> None:
    people.new("pat", "viewer")
    factory.conn.execute("update laneway.principals set kind = 'person' where name = 'pat'")


@pytest.fixture
async def browser(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    """Sends requests like a browser, which may be answered by a page."""
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://test", headers=BROWSER
    ) as client:
        yield client


@pytest.mark.usefixtures("pat")
@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("following", [None, "/ui/jobs?status=failed&q=a%20b", "/ui/"])
async def test_login_leads_to_the_dashboard(
    app: FastAPI, database: Database, how: str, following: str | None
) -> None:
    outer, prefix = served_under(app, how)
    link = await new_link(database)
    params = {"link": link} if following is None else {"link": link, "next": following}
    transport = httpx2.ASGITransport(outer)
    async with httpx2.AsyncClient(transport=transport, base_url="http://test") as browser:
        page = await browser.get(f"{prefix}/login", params=params, headers=BROWSER)
        assert page.status_code == 200
        if following is not None:
            assert f'name="next" value="{following.replace("&", "&amp;")}"' in page.text
        opened = await browser.post(f"{prefix}/login", data=params, headers=BROWSER)
        assert opened.status_code == 303
        target = urljoin(f"{prefix}/login", opened.headers["location"])
        assert target == f"{prefix}{following or '/ui/'}"
        assert (await browser.get(f"{prefix}/me")).json()["name"] == "pat"


@pytest.mark.usefixtures("pat")
@pytest.mark.parametrize(
    "following",
    [
        "https://evil.example/ui/", "//evil.example/ui/", "/\\evil.example", "ui/jobs", "/docs",
        "/ui", "/uix/", "/ui/../docs", "/ui/%2e%2e/docs", "/ui/%2F..%2Fdocs", "/ui/a b",
        "/ui/\r\nSet-Cookie: a=b", "/ui/#x", "/ui/\\..\\docs", "javascript:alert(1)",
        "/ui/" + "x" * 2000,
    ],
)  # fmt: skip
async def test_login_leads_nowhere_else(ask: Ask, database: Database, following: str) -> None:
    link = await new_link(database)
    form = {"link": link, "next": following}
    for answer in (
        await ask(None, "GET", "/login", params=form),
        await ask(None, "POST", "/login", data=form),
    ):
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
        assert "next" in answer.json()["detail"]
    page = await ask(None, "GET", "/login", params=form, headers=BROWSER)
    assert (page.status_code, "opens the start page instead" in page.text) == (200, True)
    assert ('name="next"' in page.text, f'value="{link}"' in page.text) == (False, True)
    assert (await ask(None, "POST", "/login", data={"link": link})).status_code == 303, "not used"


async def test_link_that_does_not_work_says_what_to_do(
    ask: Ask, browser: httpx2.AsyncClient
) -> None:
    form = {"link": "lwl_used"}
    page = await browser.post("/login", data=form)
    assert page.status_code == 401
    assert page.headers["content-type"].startswith("text/html")
    assert "was used before, has expired, or is incomplete" in page.text
    assert "laneway principals login NAME" in page.text
    assert "set-cookie" not in page.headers
    for accept in ({}, {"Accept": "*/*"}, {"Accept": "application/json"}):
        answer = await ask(None, "POST", "/login", data=form, headers=accept)
        assert answer.headers["content-type"] == "application/problem+json"
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")


@pytest.mark.usefixtures("still_limits")
async def test_other_refusals_are_pages_for_browsers_too(
    browser: httpx2.AsyncClient, app: FastAPI
) -> None:
    page = await browser.post("/login", data={"link": "x"}, headers={"Origin": "http://evil"})
    assert (page.status_code, page.headers["content-type"][:9]) == (403, "text/html")
    for _ in range(app.state.settings.failed_logins_per_minute + 1):
        page = await browser.post("/login", data={"link": "lwl_x"})
    assert (page.status_code, page.headers["content-type"][:9]) == (429, "text/html")
    assert int(page.headers["retry-after"]) >= 1


async def test_login_without_link_says_how_to_get_one(browser: httpx2.AsyncClient) -> None:
    page = await browser.get("/login")
    assert (page.status_code, "<form" in page.text) == (200, False)
    assert "laneway principals login NAME" in page.text


async def test_pages_need_no_script_and_no_inline_style(browser: httpx2.AsyncClient) -> None:
    hostile = '"><script>alert(1)</script>'
    for page in (
        await browser.get("/login", params={"link": hostile}),
        await browser.get("/login"),
        await browser.post("/login", data={"link": hostile}),
    ):
        assert '<link rel="stylesheet" href="ui/login.css">' in page.text
        assert not any(each in page.text for each in ("<script", "<style", "style=", "data:"))
        assert page.headers["content-security-policy"].startswith("default-src 'self';")


def test_stylesheet_is_self_contained() -> None:
    text = STYLESHEET.read_text()
    assert "light-dark(" in text
    assert not any(each in text for each in ("url(", "@import", "http:", "https:"))


@pytest.mark.usefixtures("pat")
async def test_bearer_token_is_used_instead_of_a_session(
    ask: Ask, database: Database, people: People, factory: JobFactory
) -> None:
    """A dashboard that was given a token sends it although the browser has a session too."""
    opened = await ask(None, "POST", "/login", data={"link": await new_link(database)})
    cookie = {"Cookie": opened.headers["set-cookie"].partition(";")[0]}
    assert (await ask(None, "GET", "/me", headers=cookie)).json()["name"] == "pat"
    bearer = people.new("ann", "operator").headers
    assert (await ask(None, "GET", "/me", headers={**cookie, **bearer})).json()["name"] == "ann"
    job_id = factory.submit()
    same_site = {**cookie, **bearer, "Origin": "http://test"}
    done = await ask(None, "POST", f"/jobs/{job_id}/cancel", headers=same_site)
    assert done.status_code == 200, "a token needs no CSRF token"


@pytest.mark.usefixtures("pat")
@pytest.mark.parametrize("token", ["wrong", "lw_wrong", "lwt_" + "x" * 43])
async def test_invalid_bearer_token_is_refused_despite_a_session(
    ask: Ask, database: Database, token: str
) -> None:
    opened = await ask(None, "POST", "/login", data={"link": await new_link(database)})
    cookie = {"Cookie": opened.headers["set-cookie"].partition(";")[0]}
    for path in ("/me", "/events", "/jobs"):
        headers = {**cookie, "Authorization": f"Bearer {token}"}
        answer = await ask(None, "GET", path, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
        assert answer.headers["www-authenticate"] == "Bearer"
    assert (await ask(None, "GET", "/me", headers=cookie)).status_code == 200
