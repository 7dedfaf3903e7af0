"""Flows: follow one live, find what holds it up, retry and cancel it as a whole."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.e2e import pages, waits
from tests.e2e.journeys.conftest import OpenAs
from tests.e2e.site import Site, new_key

Job = dict[str, Any]


def submit_flow(site: Site, name: str, jobs: list[Job]) -> str:
    return str(site.api.send("POST", "/flows", {"name": name, "jobs": jobs})["id"])


def status(site: Site, flow: str) -> str:
    return str(site.api.get(f"/flows/{flow}")["status"])


def step(name: str, key: str, after: list[str] | None = None) -> Job:
    payload = {"key": key, "steps": 1}
    return {"name": name, "job_type": "export", "payload": payload, "after": after or []}


def box(page: Page, name: str) -> Locator:
    graph = page.get_by_role("region", name="Graph of the flow")
    return graph.get_by_role("listitem").filter(has_text=name)


def expect_flow(page: Page, wanted: str) -> None:
    """Wait until the heading of the flow says this state."""
    head = pages.main(page).get_by_role("heading", level=1).locator("xpath=..")
    expect(head.get_by_text(wanted, exact=True)).to_be_visible()


def test_flow_is_followed_from_start_to_timeline(site: Site, open_as: OpenAs) -> None:
    name, first, last = new_key("nightly"), new_key("extract"), new_key("load")
    flow = submit_flow(site, name, [step("extract", first), step("load", last, ["extract"])])
    page = open_as("operator", "/flows").page
    pages.main(page).get_by_role("link", name=name).first.click()
    expect(page).to_have_url(f"{site.url}/ui/flows/{flow}")
    expect(box(page, "extract")).to_contain_text("running")
    expect(box(page, "load")).to_contain_text("waiting")
    site.steps.allow(first)
    expect(box(page, "extract")).to_contain_text("completed")
    expect(box(page, "load")).to_contain_text("running")
    site.steps.allow(last)
    expect_flow(page, "Completed")
    page.get_by_role("link", name="Timeline").click()
    pages.main(page).get_by_role("link", name="load", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("export")
    before = pages.main(page).get_by_role("region", name="Comes after")
    expect(before).to_contain_text("extract")


def test_job_of_a_flow_says_what_it_waits_for(site: Site, open_as: OpenAs) -> None:
    key = new_key("extract")
    jobs = [step("extract", key), step("load", new_key("load"), ["extract"])]
    flow = submit_flow(site, new_key("nightly"), jobs)
    page = open_as("operator", f"/jobs?flow={flow}&status=waiting").page
    pages.main(page).get_by_role("row").nth(1).get_by_role("link").first.click()
    explained = pages.main(page).get_by_role("region", name="Why it is not running")
    expect(explained).to_contain_text("waits for")
    pages.expect_status(page, "Waiting")
    pages.main(page).get_by_role("region", name="Comes after").get_by_role("link").first.click()
    pages.expect_status(page, "Running")
    site.steps.allow(key)


def test_failed_flow_is_retried_as_a_whole(site: Site, open_as: OpenAs) -> None:
    key = new_key("file")
    failing = {"key": key, "error": "the bucket is empty", "kind": "NoFiles"}
    done = new_key("load")
    site.steps.allow(done)
    jobs: list[Job] = [
        {"name": "import", "job_type": "import_file", "payload": failing},
        step("load", done, ["import"]),
    ]
    flow = submit_flow(site, new_key("nightly"), jobs)
    waits.until(lambda: status(site, flow) == "failed")
    page = open_as("operator", f"/flows/{flow}").page
    expect_flow(page, "Failed")
    failed = pages.main(page).get_by_role("list", name="Jobs that failed")
    expect(failed.get_by_role("link", name="import")).to_be_visible()
    expect(failed).to_contain_text("NoFiles the bucket is empty")
    box(page, "load").get_by_role("link").click()
    ended = pages.main(page).get_by_role("region", name="Why it did not run")
    expect(ended).to_contain_text("failed")
    page.go_back()
    expect(box(page, "load")).to_contain_text("cancelled")
    site.steps.allow(key)
    pages.press(pages.main(page), "Retry")
    pages.press(pages.dialog(page), "Retry 2 jobs")
    expect(pages.dialog(page)).to_have_count(0)
    waits.until(lambda: status(site, flow) == "completed")
    expect_flow(page, "Completed")
    expect(box(page, "load")).to_contain_text("completed")
    expect(failed).to_have_count(0)


def test_running_flow_is_cancelled_as_a_whole(site: Site, open_as: OpenAs) -> None:
    key = new_key("extract")
    jobs = [step("extract", key), step("load", new_key("load"), ["extract"])]
    flow = submit_flow(site, new_key("nightly"), jobs)
    page = open_as("operator", f"/flows/{flow}").page
    expect(box(page, "extract")).to_contain_text("running")
    pages.press(pages.main(page), "Cancel")
    expect(pages.dialog(page).get_by_label("Reason")).to_be_focused()
    pages.press(pages.dialog(page), "Cancel 2 jobs")
    waits.until(lambda: status(site, flow) == "cancelled")
    expect_flow(page, "Cancelled")


def test_event_from_outside_continues_a_waiting_job(site: Site, open_as: OpenAs) -> None:
    key = new_key("order")
    flow = submit_flow(
        site,
        new_key("sale"),
        [
            {"name": "order", "job_type": "take_order", "payload": {"key": key}},
            step("ship", new_key("ship"), ["order"]),
        ],
    )
    page = open_as("operator", f"/flows/{flow}").page
    expect(box(page, "order")).to_contain_text("waiting")
    box(page, "order").get_by_role("link").click()
    explained = pages.main(page).get_by_role("region", name="Why it is not running")
    expect(explained).to_contain_text("order.paid")
    expect(explained).to_contain_text(key)
    pages.expect_live(page)
    payload = json.dumps({"by": "card"})
    site.conn.execute(
        "select laneway.send_event('order.paid', %s, %s, wake => true)", [key, payload]
    )
    pages.expect_status(page, "Completed")
    expect(pages.main(page).get_by_role("region", name="Result value")).to_contain_text('"card"')
    page.go_back()
    expect(box(page, "order")).to_contain_text("completed")
    expect(box(page, "ship")).to_contain_text("running")


def test_admin_sends_the_event_from_the_page(site: Site, open_as: OpenAs) -> None:
    key = new_key("order")
    job = site.api.submit("take_order", {"key": key})
    site.api.await_status(job, "waiting")
    viewer = pages.main(open_as("viewer", f"/jobs/{job}").page)
    expect(viewer.get_by_role("region", name="Why it is not running")).to_contain_text(key)
    expect(viewer.get_by_role("button", name="Send the event")).to_have_count(0)
    page = open_as("platform_admin", f"/jobs/{job}").page
    pages.press(pages.main(page), "Send the event")
    pages.dialog(page).get_by_label("Payload").fill('{"cents": 9007199254740993}')
    pages.press(pages.dialog(page), "Send")
    pages.expect_status(page, "Completed")
    assert site.api.get(f"/jobs/{job}")["result"]["paid"] == {"cents": 9007199254740993}


def test_flow_is_found_by_its_name(site: Site, open_as: OpenAs) -> None:
    name, key = new_key("nightly"), new_key("extract")
    for each in (name, new_key("hourly")):
        submit_flow(site, each, [step("extract", key)])
    page = open_as("operator", "/flows").page
    rows = pages.main(page).get_by_role("row")
    expect(rows.filter(has_text="hourly").first).to_be_visible()
    field = page.get_by_label("Name of the flow")
    field.fill(name)
    field.press("Enter")
    expect(page).to_have_url(f"{site.url}/ui/flows?name={name}")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text(name)
    site.steps.allow(key)


def test_timeline_of_a_flow_is_zoomed(site: Site, open_as: OpenAs) -> None:
    key = new_key("extract")
    flow = submit_flow(site, new_key("nightly"), [step("extract", key)])
    page = open_as("operator", f"/flows/{flow}?view=timeline").page
    timeline = page.get_by_role("region", name="Timeline of the flow")
    expect(timeline.get_by_role("link", name="extract")).to_be_visible()
    is_wider = "frame => frame.scrollWidth > frame.clientWidth"
    assert not timeline.evaluate(is_wider)
    page.get_by_role("button", name="Zoom in").click()
    waits.until(lambda: timeline.evaluate(is_wider))
    site.steps.allow(key)


def test_alike_jobs_of_a_wide_flow_are_one_box(site: Site, open_as: OpenAs) -> None:
    key = new_key("picture")
    pictures = [
        {"name": f"picture {n}", "job_type": "resize", "payload": {"key": key}} for n in range(30)
    ]
    names = [str(each["name"]) for each in pictures]
    done = new_key("join")
    site.steps.allow(done)
    jobs = [*pictures, step("join", done, names)]
    flow = submit_flow(site, new_key("album"), jobs)
    page = open_as("operator", f"/flows/{flow}").page
    group = box(page, "resize")
    expect(group).to_have_count(1)
    expect(group).to_contain_text("× 30")
    graph = page.get_by_role("region", name="Graph of the flow").get_by_role("listitem")
    expect(graph).to_have_count(2)
    group.get_by_role("button", name="one by one").click()
    expect(graph).to_have_count(31)
    site.steps.allow(key)
    expect_flow(page, "Completed")
