"""Sign-in by the one-time link and by a token."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.e2e.journeys.conftest import OpenAs
from tests.e2e.site import Site


def test_link_signs_in_once(site: Site, open_as: OpenAs) -> None:
    visit = open_as("operator")
    expect(visit.page.get_by_role("heading", level=1)).to_be_visible()
