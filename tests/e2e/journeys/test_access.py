"""A person who may only look."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.e2e import waits
from tests.e2e.journeys.conftest import OpenAs
from tests.e2e.screens import await_content
from tests.e2e.site import Site, new_key

_ACTS = re.compile(
    r"^(cancel|retry|run now|approve|reject|drain|resume|pause|delete|edit|save|tune|clone.*|"
    r"set priority|reprioriti[sz]e|new .*|create .*|revoke|roll ?back|submit.*|retry all.*)$",
    re.IGNORECASE,
)
_ACT_BY_HAND = """
async ([root, path, method, body]) => {
  const me = await (await fetch(`${root}/me`)).json();
  const response = await fetch(root + path, { method, body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", "X-CSRF-Token": me.csrf } });
  return response.status;
}
"""


def test_viewer_sees_no_controls_and_cannot_act_by_hand(site: Site, open_as: OpenAs) -> None:
    running = site.api.submit("export", {"key": new_key("held")})
    site.api.await_status(running, "running")
    failed = site.api.submit("import_file", {"key": new_key("file"), "error": "not a file"})
    site.api.await_status(failed, "failed")
    awaiting = site.api.submit("report", {"key": new_key("report")})
    site.api.await_status(awaiting, "awaiting_approval")
    job = {"job_type": "import_file", "payload": {"key": new_key("file"), "error": "not a file"}}
    jobs = [job, {"job_type": "export", "payload": {"key": new_key("held")}}]
    flow = site.api.send("POST", "/flows", {"name": "mixed", "jobs": jobs})["id"]
    waits.until(lambda: site.api.get(f"/flows/{flow}")["counts"]["failed"] == 1)
    window = open_as("viewer")
    page = window.page
    links = page.get_by_role("navigation", name="Screens").get_by_role("link")
    expect(links.filter(has_text="Audit")).to_have_count(0)
    paths = ["/", "/lanes", "/lanes/exports", "/jobs", "/failures", "/approvals", "/workers"]
    paths += ["/limits", "/flows", f"/flows/{flow}", f"/flows/{flow}?view=timeline"]
    for path in (*paths, *(f"/jobs/{each}" for each in (running, failed, awaiting))):
        window.open(path)
        await_content(page)
        expect(page.get_by_role("main").get_by_role("button", name=_ACTS)).to_have_count(0)
        expect(page.get_by_role("main").get_by_role("menuitem", name=_ACTS)).to_have_count(0)
    attempts = [
        (f"/jobs/{running}/cancel", "POST", {}),
        (f"/jobs/{failed}/retry", "POST", {}),
        (f"/jobs/{awaiting}/approve", "POST", {}),
        (f"/flows/{flow}/retry", "POST", {}),
        (f"/flows/{flow}/cancel", "POST", {}),
        ("/flows", "POST", {"name": "by hand", "jobs": jobs}),
        ("/admin/workers/lanes/exports", "PATCH", {"enabled": False}),
        ("/admin/workers/pause", "POST", {}),
        ("/jobs/bulk", "POST", {"verb": "cancel", "filter": {"job_type": "export"}}),
    ]
    for path, method, body in attempts:
        status = page.evaluate(_ACT_BY_HAND, [site.url, path, method, body])
        assert (path, status) == (path, 403)
    assert site.api.status(running) == "running"
    counts = site.api.get(f"/flows/{flow}")["counts"]
    assert (counts["failed"], counts["cancelled"]) == (1, 0)


def test_person_without_the_overview_starts_at_the_first_screen(
    site: Site, open_as: OpenAs
) -> None:
    window = open_as("approver")
    expect(window.page).to_have_url(f"{site.url}/ui/approvals")
    await_content(window.page)
