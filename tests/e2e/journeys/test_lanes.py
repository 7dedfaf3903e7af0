"""A lane: drain and resume it, tune its slots and see them used."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.e2e import pages, waits
from tests.e2e.journeys.conftest import OpenAs
from tests.e2e.site import Site, new_key


def running(site: Site, lane: str) -> int:
    active = site.api.get("/admin/workers/status")["active"]
    return len([each for each in active if each["lane"] == lane])


def test_drained_lane_starts_nothing_until_it_is_resumed(site: Site, open_as: OpenAs) -> None:
    page = open_as("operator", "/lanes/imports").page
    pages.press(pages.main(page), "Drain")
    expect(pages.main(page).get_by_text("Drained").first).to_be_visible()
    job = site.api.submit("flaky_sync", {"account": "mail"})
    explained = site.api.get(f"/jobs/{job}/explain")
    assert "drained" in str(explained)
    assert site.api.status(job) == "approved"
    pages.press(pages.main(page), "Resume")
    site.api.await_status(job, "completed")
    expect(pages.main(page).get_by_role("button", name=pages.named("Drain"))).to_be_visible()


def test_tuned_slots_are_used(site: Site, open_as: OpenAs) -> None:
    key = new_key("picture")
    for _ in range(4):
        site.api.submit("resize", {"key": key})
    waits.until(lambda: running(site, "thumbnails") == 2)
    page = open_as("operator", "/lanes/thumbnails").page
    slots = pages.main(page).get_by_role("textbox", name="Slots")
    slots.fill("3")
    slots.press("Tab")
    expect(pages.main(page)).to_contain_text("2 → 3 slots")
    pages.press(pages.main(page), "Save")
    waits.until(lambda: running(site, "thumbnails") == 3)
    expect(pages.main(page)).to_contain_text("3 of 3 slots in use")
    expect(pages.main(page)).to_contain_text("operator")
    site.steps.allow(key)
    expect(pages.main(page)).to_contain_text("0 of 3 slots in use")
