"""Data for every screen: months of history, and jobs of the application in every state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.api import job_history
from bench.server import Database
from tests.e2e import waits
from tests.e2e.site import Site, new_key

ENDED = 20_000
WAITING = 400
# A JavaScript number cannot hold it.
BIG = 9007199254740993
_FAILURES = {
    "no answer from example.org within 30 s": 6,
    "column 'amount' has 3 values, expected 4": 3,
    "the file is not a spreadsheet": 1,
}


def fill_history(dsn: str, ended: int = ENDED, waiting: int = WAITING) -> None:
    """Store ended and waiting jobs in an empty database, before a server starts on it."""
    database = Database(dsn, Path())
    try:
        # Only this connection: the database under measurement commits as always.
        database.conn.execute("set synchronous_commit = off")
        job_history.fill(database, ended, waiting)
    finally:
        database.close()


def fill_site(site: Site) -> dict[str, str]:
    """Bring jobs of the application into every state; return an id by what it shows."""
    api = site.api
    made: dict[str, str] = {}
    for number in range(8):
        site.steps.allow(f"done-{number}")
        api.submit("export", {"key": f"done-{number}", "steps": 3}, tags=["nightly"])
    for error, count in _FAILURES.items():
        for number in range(count):
            payload = {"key": f"failed-{number}", "error": error}
            made["failed"] = api.submit("import_file", payload, tags=["nightly"])
    made["retried"] = api.submit("flaky_sync", {"account": "calendar"})
    made["running"] = _running(site)
    made["limited"] = _limited(site)
    made |= _waits(site)
    for number in range(4):
        api.submit("resize", {"key": new_key("held")}, priority=number)
    made["flow"] = _flows(site)
    made["awaiting"] = api.submit("report", {"key": "later", "steps": BIG, "year": 2026})
    api.submit("report", {"key": "later", "year": 2027})
    api.submit("payout", {"account": "DE89 3704 0044", "cents": 12_345_00})
    made["delayed"] = api.submit("export", {"key": "later"}, delay=3600)
    cancelled = api.submit("export", {"key": "never"}, delay=3600)
    api.send("POST", f"/jobs/{cancelled}/cancel", {"reason": "ordered twice"})
    _controls(site)
    for status, name in (("failed", "failed"), ("completed", "retried")):
        api.await_status(made[name], status)
    api.await_status(made["awaiting"], "awaiting_approval")
    return made


def _running(site: Site) -> str:
    key = new_key("running")
    site.steps.allow(key, 5)
    running = site.api.submit("export", {"key": key, "steps": 8, "note": "for the auditors"})
    waits.until(lambda: (site.api.get(f"/jobs/{running}")["progress"] or {}).get("done") == 5)
    return running


def _limited(site: Site) -> str:
    holder = site.api.submit("call_partner", {"key": new_key("holder")})
    site.api.await_status(holder, "running")
    return site.api.submit("call_partner", {"key": new_key("limited")})


def _flows(site: Site) -> str:
    """A flow that completes, one that fails, and one in every state; return the last."""
    site.steps.allow("in-flow")

    def step(name: str, after: Sequence[str] = (), key: str = "in-flow") -> dict[str, Any]:
        payload = {"key": key, "steps": 2}
        return {"name": name, "job_type": "export", "payload": payload, "after": list(after)}

    broken = {"key": "broken-flow", "error": "the file is not a spreadsheet"}
    failing = {"name": "import", "job_type": "import_file", "payload": broken}
    pictures = [f"picture {n}" for n in range(12)]
    flows: dict[str, list[dict[str, Any]]] = {
        "nightly export": [step("extract"), step("clean", ["extract"]), step("load", ["clean"])],
        "month end": [failing, step("close", ["import"])],
        "catalogue": [
            step("list"),
            *(
                {"name": name, "job_type": "resize", "payload": {"key": "later"}, "after": ["list"]}
                for name in pictures
            ),
            step("write the texts of all pictures", ["list"], new_key("held")),
            step("join", [*pictures, "write the texts of all pictures"]),
            {"name": "sign off", "job_type": "report", "payload": {"key": "x"}, "after": ["list"]},
            step("print", ["join", "sign off"]),
        ],
    }
    made = [
        site.api.send("POST", "/flows", {"name": name, "tags": ["nightly"], "jobs": jobs})["id"]
        for name, jobs in flows.items()
    ]
    return str(made[-1])


def _waits(site: Site) -> dict[str, str]:
    """Handlers that wait for an event, for a time and for sub-jobs, which fill their lane."""
    api, dry, held = site.api, new_key("album"), new_key("album")
    site.steps.allow(f"{dry}-0")
    asleep = api.submit("make_album", {"key": dry, "pictures": 1})
    waits.until(lambda: (api.get(f"/jobs/{asleep}")["waits_for"] or {}).get("kind") == "sleep")
    made = {
        "event": api.submit("take_order", {"key": "2026-1117"}),
        "sleep": asleep,
        "sub-jobs": api.submit("make_album", {"key": held}),
    }
    for job in made.values():
        api.await_status(job, "waiting")
    return made


def _controls(site: Site) -> None:
    api = site.api
    api.send("PATCH", "/admin/workers/lanes/exports", {"max_slots": 5})
    api.send("PATCH", "/admin/workers/lanes/system", {"enabled": False})
    api.send("PUT", "/admin/limits/partner", {"max_concurrent": 1})
    schedules = {
        "nightly-export": {"cron": "30 2 * * 1-5", "timezone": "Europe/Berlin"},
        "hourly-import": {"cron": "@hourly"},
    }
    for name, more in schedules.items():
        payload = {"key": "scheduled"}
        sent = {"name": name, "job_type": "export", "payload": payload, **more}
        api.send("POST", "/admin/schedules", sent)
    api.send("POST", "/admin/tokens", {"principal": "platform_admin", "name": "deploys"})
    site.accounts.of("viewer")
    site.accounts.of("approver")
