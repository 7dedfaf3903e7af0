"""Sign-in by the one-time link and by a token, and the end of a session."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Browser, expect

from tests.e2e import pages
from tests.e2e.browser import visit
from tests.e2e.journeys.conftest import OpenAs
from tests.e2e.site import Site


def test_link_signs_in_once(site: Site, chromium: Browser) -> None:
    link = site.link("operator")
    with visit(chromium, site.url) as first:
        page = first.sign_in(link)
        expect(page.get_by_role("heading", level=1, name="Overview")).to_be_visible()
        expect(pages.account(page, "operator")).to_be_visible()
    with visit(chromium, site.url) as second:
        second.page.goto(link)
        second.press_sign_in()
        refused = second.page.get_by_role("heading", name="This link does not work")
        expect(refused).to_be_visible()


def test_secret_of_a_link_signs_in_by_the_form(site: Site, chromium: Browser) -> None:
    """`laneway principals login` prints only the secret."""
    [secret] = parse_qs(urlsplit(site.link("operator")).query)["link"]
    with visit(chromium, site.url) as window:
        page = window.open("/jobs")
        page.get_by_label("One-time link or token").fill(secret)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", level=1, name="Jobs")).to_be_visible()
        page.reload()
        expect(page.get_by_role("heading", level=1, name="Jobs")).to_be_visible()


def test_token_signs_in_and_is_forgotten_by_sign_out(site: Site, chromium: Browser) -> None:
    with visit(chromium, site.url) as window:
        page = window.open("/jobs")
        page.get_by_label("One-time link or token").fill(site.accounts.of("operator").token)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", level=1, name="Jobs")).to_be_visible()
        pages.account(page, "operator").click()
        page.get_by_role("menuitem", name="Sign out").click()
        expect(page.get_by_label("One-time link or token")).to_be_visible()
        page.reload()
        expect(page.get_by_label("One-time link or token")).to_be_visible()


def test_wrong_token_is_refused_in_words(site: Site, chromium: Browser) -> None:
    with visit(chromium, site.url) as window:
        page = window.open()
        page.get_by_label("One-time link or token").fill("lw_no_such_token")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text(re.compile("credentials|token"))
        expect(page.get_by_label("One-time link or token")).to_be_visible()


def test_sign_out_ends_the_session(site: Site, open_as: OpenAs) -> None:
    window = open_as("operator")
    cookies = window.context.cookies()
    pages.account(window.page, "operator").click()
    window.page.get_by_role("menuitem", name="Sign out").click()
    expect(window.page.get_by_label("One-time link or token")).to_be_visible()
    window.context.add_cookies([{**each} for each in cookies])  # type: ignore[typeddict-item]
    window.page.reload()
    expect(window.page.get_by_label("One-time link or token")).to_be_visible()


def test_printed_link_signs_in_the_first_person(site: Site, chromium: Browser) -> None:
    with visit(chromium, site.url) as window:
        page = window.sign_in(site.server.first_link)
        expect(pages.account(page, "admin")).to_be_visible()
