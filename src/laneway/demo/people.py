"""The people and services of the demo's story, and what they changed before the user arrived.

The demo plays these people: each change is a real one, recorded with a person's name and with the
interface that the person would have used.
"""

from __future__ import annotations

from typing import Final

from laneway.control import access, lanes, limits, schedules
from laneway.domain.actor import Actor, Door
from laneway.store.database import Database

ADMIN: Final = "admin"
# Person: role and scope. Services have a token.
PEOPLE: Final = {
    "maya": ("operator", "all"),
    "lea": ("approver", "all"),
    "omar": ("submitter", "own"),
    "jonas": ("viewer", "all"),
}
SERVICES: Final = {
    "nightly-etl": ("submitter", "own"),
    "gpu-pool": ("remote_worker", "all"),
    "grafana": ("metrics_reader", "all"),
}
REMOTE_LANE: Final = "embeddings"
OWN_LANE: Final = "reports"


def actor(name: str, door: Door = "ui") -> Actor:
    """One of the people, through an interface."""
    return Actor(name, door=door, address="127.0.0.1")


async def set_up(db: Database) -> str:
    """Create people, lanes, limits and schedules; return the token of the remote worker."""
    await _create_lanes(db)
    token = await _create_people(db)
    await _tune(db)
    await _create_schedules(db)
    return token


async def _create_lanes(db: Database) -> None:
    for name, job_type in ((REMOTE_LANE, "embed_chunks"), (OWN_LANE, "weekly_report")):
        settings = {"name": name, "job_types": [job_type], "max_slots": 2, "poll_interval_ms": 1000}
        await lanes.create(db, settings, by=actor(ADMIN, "cli"))


async def _create_people(db: Database) -> str:
    admin = actor(ADMIN, "cli")
    await access.create_role(db, "metrics_reader", ["metrics:read"], by=admin)
    for names, kind in ((PEOPLE, "person"), (SERVICES, "service")):
        for name, (role, scope) in names.items():
            await access.create_principal(db, name, kind, by=admin)
            await access.grant_role(db, name, role, scope, by=admin)
    await access.create_token(db, "maya", "laptop", by=actor("maya"))
    await access.create_token(db, "grafana", "scrape", by=admin)
    await access.create_token(db, "nightly-etl", "airflow", lanes=["interactive"], by=admin)
    old = await access.create_token(db, "omar", "notebook", expires_in=3600, by=actor("omar"))
    await access.revoke_token(db, old.token.id, by=admin)
    made = await access.create_token(db, "gpu-pool", "gpu-1", lanes=[REMOTE_LANE], by=admin)
    return made.secret


async def _tune(db: Database) -> None:
    """Leave a history of changes, of several people through several interfaces."""
    maya = actor("maya")
    await lanes.tune(db, "interactive", {"max_slots": 4}, by=maya)
    await lanes.tune(db, "interactive", {"max_slots": 3, "poll_interval_ms": 1000}, by=maya)
    await lanes.tune(db, REMOTE_LANE, {"max_slots": 4}, by=actor("maya", "mcp"))
    await lanes.drain(db, "maintenance", by=actor(ADMIN, "cli"))
    await lanes.resume(db, "maintenance", by=maya)
    await limits.tune(db, "openai", {"max_concurrent": 6}, by=actor("maya", "http"))
    rate = {"max_concurrent": 2, "rate_count": 120, "rate_period_s": 60}
    await limits.tune(db, "search-index", rate, by=actor(ADMIN, "cli"))


async def _create_schedules(db: Database) -> None:
    for name, change in {
        "nightly-projection": {
            "job_type": "projection",
            "cron": "30 2 * * mon-fri",
            "timezone": "Europe/Berlin",
            "payload": {"points": 600},
            "tags": ["nightly"],
        },
        "news-feeds": {
            "job_type": "sync_feed",
            "cron": "*/2 * * * *",
            "payload": {"feed": "news.example.org"},
            "missed": "skip",
        },
        "restore-test": {
            "job_type": "restore",
            "cron": "0 4 1 * *",
            "payload": {"backup": "monthly", "tables": 100},
        },
    }.items():
        await schedules.put(db, name, change, by=actor("maya"))
    await schedules.disable(db, "restore-test", by=actor("maya", "cli"))
