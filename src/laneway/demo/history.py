"""Sample history: ended jobs with a past date, so that charts and lists are full from the start.

The demo inserts them into its own database, and nothing else ever does. Each has the tag `sample`;
everything else in the demo really happened.
"""

from __future__ import annotations

import json
import math
import random
import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from laneway.demo import documents
from laneway.engine.run.attempt_outcomes import describe
from laneway.store.database import Database

TAG: Final = "sample"
DAY_S: Final = 24 * 3600.0
DENSE_S: Final = 40 * 60.0
_SQL: Final = Path(__file__).with_name("history.sql")

NAMES: Final = ("annual-report", "manual", "lecture", "contract", "atlas", "minutes", "thesis")
COMPLETE: Final = '{"total": 118.4, "currency": "EUR"}'
INCOMPLETE: Final = '{"currency": "EUR"}'
_SUBMITTERS: Final = ("omar", "nightly-etl", "nightly-etl", "maya")
# Job type: its lane, weight, seconds of waiting and of running.
_TYPES: Final = {
    "ingestion": ("interactive", 10, 1.5, 4.0),
    "thumbnail": ("default", 8, 0.2, 0.6),
    "ingest_image": ("interactive", 3, 2.0, 2.5),
    "embed_chunks": ("embeddings", 3, 25.0, 40.0),
    "sync_feed": ("default", 4, 0.3, 0.8),
    "parse_invoice": ("default", 3, 0.3, 0.4),
    "summarize": ("default", 2, 18.0, 15.0),
    "projection": ("maintenance", 1, 60.0, 30.0),
}
# Job type: the share that fails, the attempts, and the code that fails.
_FAILURES: Final[dict[str, tuple[float, int, Callable[[str], object]]]] = {
    "sync_feed": (0.2, 3, documents.raise_timeout),
    "parse_invoice": (0.16, 2, lambda _: documents.read_total(INCOMPLETE)),
    "ingest_image": (0.1, 1, lambda name: documents.check_image(f"{name}.heic")),
    "embed_chunks": (0.05, 4, lambda _: _raise(documents.TooManyRequests("429 Too Many Requests"))),
}
_BURST_S: Final = (9 * 60.0, 13 * 60.0)


async def insert(db: Database, seed: int) -> None:
    """Insert the sample history."""
    rows = make_rows(seed, datetime.now(UTC))
    params = {
        "rows": json.dumps(rows),
        "worker": UUID(int=seed, version=4),
        "host": socket.gethostname(),
    }
    async with db.connection() as conn:
        await conn.execute(_SQL.read_text("utf-8").encode(), params)


def make_rows(seed: int, now: datetime) -> list[dict[str, Any]]:
    """The jobs, oldest first, with ages in seconds; the same for the same seed and time."""
    chance = random.Random(seed)
    times = sorted([*_nightly(now), *_feeds(now), *_moments(chance)], reverse=True)
    return [
        _row(n, ago, schedule, job_type or _any_type(chance), chance)
        for n, (ago, schedule, job_type) in enumerate(times)
    ]


# Seconds ago, schedule and job type; empty where there is none.
_Moment = tuple[float, str, str]


def _moments(chance: random.Random) -> Iterator[_Moment]:
    """Dense in the last minutes, in waves; sparse before."""
    ago = 45.0
    while ago < DAY_S:
        yield ago, "", ""
        wave = 1.0 + 0.6 * math.sin(ago / 230.0)
        ago += chance.expovariate(wave / (4.0 if ago < DENSE_S else 150.0))


def _nightly(now: datetime) -> Iterator[_Moment]:
    """The last ten runs of `nightly-projection`: 02:30 in Berlin, Monday to Friday."""
    local = now.astimezone(ZoneInfo("Europe/Berlin"))
    slot = local.replace(hour=2, minute=30, second=0, microsecond=0)
    found = 0
    while found < 10:
        if slot.weekday() < 5 and slot < local - timedelta(hours=1):
            found += 1
            yield (now - slot).total_seconds() - 0.5, "nightly-projection", "projection"
        slot -= timedelta(days=1)


def _feeds(now: datetime) -> Iterator[_Moment]:
    """The last runs of `news-feeds`: every second minute."""
    slot = now.replace(minute=now.minute - now.minute % 2, second=0, microsecond=0)
    for n in range(1, 13):
        at = slot - timedelta(minutes=2 * n)
        yield (now - at).total_seconds() - 0.5, "news-feeds", "sync_feed"


def _any_type(chance: random.Random) -> str:
    return chance.choices(list(_TYPES), [weight for _, weight, _, _ in _TYPES.values()])[0]


def _row(n: int, ago: float, schedule: str, job_type: str, chance: random.Random) -> dict[str, Any]:
    lane, _, wait_s, run_s = _TYPES[job_type]
    name = f"{chance.choice(NAMES)}-{chance.randint(1, 400)}"
    share, attempts, fail = _FAILURES.get(job_type, (0.0, 1, _succeed))
    if _BURST_S[0] < ago < _BURST_S[1] and job_type == "sync_feed":
        share = 0.9
    is_failed = chance.random() < share
    # Some that could fail did so once, and then completed.
    is_retried = not is_failed and attempts > 1 and chance.random() < 0.2
    tried = attempts if is_failed else 2 if is_retried else 1
    is_cancelled = tried == 1 and not is_failed and chance.random() < 0.012
    error = _error_of(fail, name) if is_failed or is_retried else None
    waited = wait_s * chance.uniform(0.3, 2.0) + 3.0 * (tried - 1)
    ran = min(run_s * chance.lognormvariate(0.0, 0.4), ago - waited - 1.0)
    status = "failed" if is_failed else "cancelled" if is_cancelled else "completed"
    return {
        "n": n,
        "id": str(_new_id(chance)),
        "job_type": job_type,
        "lane": lane,
        "payload": _payload(job_type, name, is_failed=is_failed),
        "priority": 10 if job_type == "ingestion" else 0,
        "tags": [TAG, "nightly"] if schedule == "nightly-projection" else [TAG],
        "created_by": f"schedule:{schedule}" if schedule else chance.choice(_SUBMITTERS),
        "ago": ago,
        "waited": min(waited, ago / 2),
        "ran": max(0.05, ran),
        "status": status,
        "attempts": tried,
        "result": {"name": name} if status == "completed" else None,
        "error": error if is_failed else None,
        "earlier": error,
        "log": f"{name}: sample data of the demo, inserted with a past date",
        "schedule": schedule or None,
    }


def _payload(job_type: str, name: str, *, is_failed: bool) -> dict[str, Any]:
    made: dict[str, dict[str, Any]] = {
        "ingestion": {"path": f"{name}.pdf", "pages": 12},
        "thumbnail": {"image": f"{name}.jpg"},
        "ingest_image": {"path": f"{name}.{'heic' if is_failed else 'tiff'}"},
        "embed_chunks": {"document": f"{name}.pdf", "chunks": 160, "model": "embed-small"},
        "sync_feed": {"feed": f"{name}.example.org", "is_reachable": not is_failed},
        "parse_invoice": {"invoice": name, "text": INCOMPLETE if is_failed else COMPLETE},
        "summarize": {"document": f"{name}.pdf"},
        "projection": {"points": 600},
    }
    return made[job_type]


def _error_of(fail: Callable[[str], object], name: str) -> Any:
    """The error as a worker stores it, with the traceback of the code that raises it."""
    try:
        fail(name)
    except Exception as error:
        return json.loads(describe(error))
    return None


def _succeed(name: str) -> None:
    """Never raises."""


def _raise(error: Exception) -> None:
    raise error


def _new_id(chance: random.Random) -> UUID:
    return UUID(int=chance.getrandbits(128), version=4)
