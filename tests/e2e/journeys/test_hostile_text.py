"""Hostile text in every field is shown as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e import hostile, pages, waits
from tests.e2e.browser import PHONE
from tests.e2e.journeys.conftest import OpenAs
from tests.e2e.journeys.test_approvals import open_card
from tests.e2e.processes import WorkerProgram
from tests.e2e.run import XSS_EXECUTED
from tests.e2e.screens import await_content, screens, too_wide
from tests.e2e.site import Api, Site, new_key


@pytest.fixture(scope="module")
def jobs(site: Site) -> dict[str, str]:
    """Ids of jobs with hostile text, which stands in every other field that takes text, too."""
    mallory = Api(site.url, site.accounts.of("platform_admin", hostile.NAME))
    try:
        key = new_key("hostile")
        site.steps.allow(key)
        tags = [text[:60].strip() for text in hostile.TEXTS[:8]]
        failed = mallory.submit(hostile.JOB_TYPE, hostile.payload(key), tags=tags)
        shown = hostile.payload(new_key("held"), fails=False)
        running = mallory.submit(hostile.JOB_TYPE, shown, tags=tags, unique_key=tags[1])
        cancelled = mallory.submit(hostile.JOB_TYPE, shown, delay=3600)
        for text in hostile.TEXTS[:12]:
            done = mallory.submit("report", {"key": text, "year": 1})
            site.api.await_status(done, "awaiting_approval")
            mallory.send("POST", f"/jobs/{done}/reject", {"reason": text})
        awaiting = mallory.submit("report", {"key": "".join(hostile.TEXTS[:5])})
        site.api.await_status(awaiting, "awaiting_approval")
        mallory.send("POST", f"/jobs/{cancelled}/cancel", {"reason": hostile.TEXTS[1]})
        mallory.send("PATCH", "/admin/workers/lanes/hostile", {"max_slots": 5})
        flow = submit_hostile_flow(mallory)
        waiting = [
            mallory.submit("take_order", {"key": text, "event": text, "name": text})
            for text in hostile.NAMES
        ]
        for each in waiting:
            site.api.await_status(each, "waiting")
        schedule = {"job_type": hostile.JOB_TYPE, "cron": "0 3 * * *", "payload": shown}
        mallory.send("POST", "/admin/schedules", {"name": new_key("hostile"), **schedule})
        token = {"principal": hostile.NAME, "name": hostile.TEXTS[1]}
        mallory.send("POST", "/admin/tokens", token)
        site.api.await_status(failed, "failed")
        site.api.await_status(running, "running")
    finally:
        mallory.close()
    return {
        "failed": failed, "running": running, "cancelled": cancelled, "awaiting": awaiting,
        "flow": flow, "event": waiting[0],
        **{f"waiting {number}": each for number, each in enumerate(waiting)},
    }  # fmt: skip


def submit_hostile_flow(api: Api) -> str:
    """A flow with hostile names, one job after the other; the first one fails at once."""
    names = hostile.NAMES
    jobs: list[dict[str, Any]] = [
        {
            "name": name, "job_type": hostile.JOB_TYPE,
            "payload": hostile.payload(new_key("held")), "after": names[number - 1 : number],
        }
        for number, name in enumerate(names)
    ]  # fmt: skip
    failing = {"key": new_key("file"), "error": " ".join(hostile.TEXTS), "kind": names[0]}
    jobs.append({"name": "fails", "job_type": "import_file", "payload": failing})
    sent = {"name": names[1], "tags": [name[:60].strip() for name in names[:3]], "jobs": jobs}
    return str(api.send("POST", "/flows", sent)["id"])


def test_hostile_text_is_shown_as_text(
    site: Site,
    jobs: dict[str, str],
    open_as: OpenAs,
    record_property: Callable[[str, object], None],
) -> None:
    with WorkerProgram(site.dsn, site.folder, "--name", hostile.WORKER, "--lanes", "system"):
        waits.until(lambda: hostile.WORKER in str(site.api.get("/admin/workers/status")))
        window = open_as("platform_admin")
        paths = [
            *screens(jobs).values(),
            *(f"/jobs/{each}" for each in jobs.values()),
            f"/jobs?flow={jobs['flow']}",
            "/flows?name=%3Cimg%20src%3Dx%3E&tag=%3Cscript%3E&status=%3Cscript%3E",
            "/flows/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E",
            "/lanes",
            "/lanes/hostile",
            "/settings/tokens",
            "/settings/roles",
            "/jobs?q=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&status=%3Cscript%3E",
            "/lanes/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
            "/jobs/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E",
        ]
        executed = []
        for path in paths:
            page = window.open(path)
            await_content(page)
            executed += [*window.violations(), *hostile.made_elements(page)]
        card = open_card(window.open("/approvals"), jobs["awaiting"])
        payload = card.get_by_role("listitem").filter(has_text="key:").first
        for text in hostile.TEXTS[:5]:
            expect(payload).to_contain_text(text.replace('"', '\\"'))
        executed += [*window.violations(), *hostile.made_elements(page)]
        page = window.open(f"/flows/{jobs['flow']}")
        graph = page.get_by_role("region", name="Graph of the flow")
        for name in hostile.NAMES:
            expect(graph.get_by_text(name, exact=True)).to_have_count(1)
        for number, name in enumerate(hostile.NAMES):
            page = window.open(f"/jobs/{jobs[f'waiting {number}']}")
            why = pages.main(page).get_by_role("region", name="Why it is not running")
            expect(why).to_contain_text(f"key {name}")
            executed += [*window.violations(), *hostile.made_elements(page)]
        main = pages.main(window.open(f"/jobs/{jobs['failed']}"))
        for text in hostile.TEXTS[:5]:
            expect(main).to_contain_text(text)
    executed += window.record.dialogs
    record_property(XSS_EXECUTED, len(executed))
    assert executed == []
    assert window.record.errors == []


def test_long_words_stay_inside_a_phone(jobs: dict[str, str], open_as: OpenAs) -> None:
    window = open_as("platform_admin", size=PHONE)
    wide = {}
    for path in (*screens(jobs).values(), *(f"/jobs/{each}" for each in jobs.values())):
        page = window.open(path)
        await_content(page)
        wide[path] = too_wide(page)
    assert {path: found for path, found in wide.items() if found} == {}
