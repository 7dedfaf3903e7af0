"""Every read of every interface with months of ended jobs: the slowest ones, in milliseconds."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import combinations
from statistics import median
from typing import Any

import httpx2

from bench.api import job_history
from bench.api.replica import serving
from bench.figures import Figures
from bench.scale import Scale, log
from bench.server import Database, Server
from bench.workers import ROOT, environment
from laneway.config.settings import Settings
from laneway.control import access
from laneway.store.database import Database as Pool

TIMES = 5
QUICK_MS = 25.0
SHOWN = 15
_RECENT = (datetime.now(UTC) - timedelta(hours=2)).isoformat()
_LONG_AGO = (datetime.now(UTC) - timedelta(days=50)).isoformat()
# A common value, a rare old value and an absent value of each filter.
FILTERS: Mapping[str, tuple[str, ...]] = {
    "status": (
        "completed", "failed", "cancelled", "approved", "pending", "running", "awaiting_approval",
        "waiting",
    ),
    "lane": ("default", "busy", "rare", "system"),
    "job_type": ("bench_1", "rare", "never"),
    "tag": ("nightly", "rare", "never"),
    "worker": ("worker-1", "worker-0", "worker-51", "never"),
    "since": (_RECENT, _LONG_AGO),
    "until": (_RECENT, _LONG_AGO),
    "q": ("example.org", "documents/7.pdf", "never"),
    "workspace": ("default", "rare", "never"),
}  # fmt: skip
# Principals with the role operator: scope, workspace, lanes.
Granted = tuple[str, str | None, list[str] | None]
GRANTS: Mapping[str, tuple[Granted, ...]] = {
    "admin": (("all", None, None),),
    "alice": (("own", None, None),),
    "rare": (("own", None, None),),
    "newcomer": (("own", None, None),),
    "team": (("workspace", "team", None),),
    "rare place": (("workspace", "rare", None),),
    "busy lane": (("all", None, ["busy"]),),
    "rare lanes": (("all", None, ["rare", "system"]),),
    "own or lanes": (("own", None, None), ("all", None, ["rare", "system"])),
    "own in lanes": (("own", None, ["rare"]),),
    "two places": (("workspace", "rare", None), ("workspace", "never", None)),
}
FLOW_FILTERS: Mapping[str, tuple[str, ...]] = {
    "status": ("running", "completed", "failed", "cancelled"),
    "name": ("rare", "never"),
    "tag": ("nightly", "rare", "never"),
    "workspace": ("default", "rare", "never"),
}
VERBS: Mapping[str, dict[str, object]] = {
    "cancel": {},
    "retry": {},
    "delete": {},
    "approve": {},
    "reject": {"reason": "no"},
    "reprioritize": {"priority": 3},
}


@dataclass(frozen=True, slots=True)
class Read:
    """One request that is timed."""

    who: str
    name: str
    ask: Callable[[], object]


def make_tokens(database: Database) -> dict[str, str]:
    async def make() -> dict[str, str]:
        pool = Pool(database.dsn, Settings.load(database_url=database.dsn))
        made = {}
        try:
            for name, grants in GRANTS.items():
                called = name.replace(" ", "_")
                await access.create_principal(pool, called, "service", by="bench")
                for scope, workspace, lanes in grants:
                    role = "platform_admin" if name == "admin" else "operator"
                    await access.grant_role(
                        pool, called, role, scope, workspace=workspace, lanes=lanes, by="bench"
                    )
                made[name] = (await access.create_token(pool, called, "bench", by="bench")).secret
        finally:
            await pool.close()
        return made

    return asyncio.run(make())


def _shown(params: Mapping[str, object]) -> str:
    names = {_RECENT: "recent", _LONG_AGO: "long ago"}
    return " ".join(f"{name}={names.get(str(value), value)}" for name, value in params.items())


def _searches() -> Iterator[tuple[str, dict[str, str]]]:
    """Pairs of a principal and filters: each filter alone, then two at a time."""
    alone = [{name: value} for name, values in FILTERS.items() for value in values]
    for who in GRANTS:
        yield who, {}
        yield from ((who, each) for each in alone)
    pairs = [{**one, **two} for one, two in combinations(alone, 2) if one.keys() != two.keys()]
    # The API refuses a period that ends before it begins.
    yield from (
        ("admin", each)
        for each in pairs
        if not each.keys() >= {"since", "until"} or each["since"] < each["until"]
    )


def _reads(database: Database, clients: Mapping[str, httpx2.Client]) -> Iterator[Read]:
    def get(who: str, path: str, **params: object) -> Read:
        def ask() -> None:
            clients[who].get(path, params=params).raise_for_status()  # type: ignore[arg-type]

        return Read(who, f"{who}: GET {path} {_shown(params)}", ask)

    def post(who: str, path: str, body: dict[str, Any]) -> Read:
        def ask() -> None:
            clients[who].post(path, json=body).raise_for_status()

        return Read(who, f"{who}: POST {path} {body['verb']} {_shown(body['filter'])}", ask)

    for who, params in _searches():
        yield get(who, "/jobs", **params)
        if len(params) < 2:
            yield get(who, "/jobs", **params, limit=200)
    # Not among FILTERS: only jobs of some statuses have an error or an approval.
    for who in GRANTS:
        for error_type in ("TimeoutError", "never"):
            yield get(who, "/jobs", error_type=error_type)
            yield get(who, "/jobs", error_type=error_type, job_type="rare")
        yield get(who, "/jobs", was_approved=True, job_type="rare", limit=1)
    for who in GRANTS:
        for name, values in FILTERS.items():
            if name in ("lane", "job_type", "tag", "since", "until", "workspace"):
                yield from (get(who, "/jobs/counts", **{name: value}) for value in values)
        yield get(who, "/jobs/counts")
        for verb, rest in VERBS.items() if who == "admin" else [("cancel", {}), ("retry", {})]:
            common = {"verb": verb, "dry_run": True, **rest}
            yield post(who, "/jobs/bulk", {**common, "filter": {}, "all": True})
            for name in ("lane", "job_type", "tag", "workspace", "q", "since"):
                for value in FILTERS[name]:
                    yield post(who, "/jobs/bulk", {**common, "filter": {name: value}})
    queries = {
        "ended": "select j.id from laneway.jobs j where seq = 100",
        "waiting": "select j.id from laneway.jobs j join laneway.ready r using (seq)"
        " order by seq desc limit 1",
        "awaiting": "select j.id from laneway.jobs j join laneway.awaiting r using (seq) limit 1",
        "sleeps": "select j.id from laneway.jobs j join laneway.waiting r using (seq)"
        " where reason = 'sleep' limit 1",
        "needs an event": "select j.id from laneway.jobs j join laneway.waiting r using (seq)"
        " where reason = 'event' limit 1",
        "comes after one": "select j.id from laneway.jobs j join laneway.waiting r using (seq)"
        " where reason = 'jobs' limit 1",
        "came after 999": "select j.id from laneway.jobs j join laneway.links l using (seq)"
        " order by cardinality(parents) desc nulls last limit 1",
    }
    for query in queries.values():
        for part in ("", "/attempts", "/explain"):
            yield get("admin", f"/jobs/{database.value(query)}{part}")
    yield get("admin", "/jobs", status="awaiting_approval", oldest_first=True)
    for name, values in FILTERS.items():
        for value in values:
            if name != "status":
                inbox = {"status": "awaiting_approval", "oldest_first": True, name: value}
                yield get("admin", "/jobs", **inbox)
    for who in GRANTS:
        yield get(who, "/flows")
        for name, values in FLOW_FILTERS.items():
            yield from (get(who, "/flows", **{name: value}) for value in values)
    for flow in ("1", "2", "(select max(seq) from laneway.flows)"):
        flow_id = database.value(f"select id from laneway.flows where seq = {flow}")
        for limit in (200, 1000):
            yield get("admin", f"/flows/{flow_id}", limit=limit)
        for status in FILTERS["status"]:
            yield get("admin", "/jobs", flow=flow_id, status=status)
    for path in (
        "/admin/workers/lanes", "/admin/workers/lanes/default", "/admin/workers/status",
        "/admin/workers/types", "/admin/workers/lanes/default/history", "/admin/changes",
        "/admin/schedules", "/admin/schedules/schedule_1/slots", "/admin/limits", "/admin/database",
        "/admin/principals", "/admin/roles", "/admin/grants", "/admin/tokens", "/me", "/readyz",
        "/metrics",
    ):  # fmt: skip
        yield get("admin", path)
    for window in (3600, 86400):
        stats = {"window_s": window, "bucket_s": 600}
        yield get("admin", "/admin/stats", **stats)
        yield get("admin", "/admin/stats", **stats, lane="busy")
        yield get("admin", "/admin/stats", **stats, job_type="bench_1")
        yield get("admin", "/admin/stats", **stats, by_lane=True)
        yield get("admin", "/admin/stats/failures", window_s=window)
    for asked in (
        {}, {"actor": "rare"}, {"actor": "never"}, {"kind": "lane"}, {"door": "mcp"},
        {"action": "never"}, {"name": "17"}, {"kind": "job", "name": "17"}, {"outcome": "refused"},
        {"workspace": "never"}, {"since": _LONG_AGO, "door": "mcp"}, {"since": _RECENT},
    ):  # fmt: skip
        yield get("admin", "/admin/audit", **asked)
    yield Read("admin", "view by id", lambda: _view(database))
    for path in (f"/jobs/{database.value(queries['waiting'])}/stream", "/events?topic=jobs"):
        yield Read(
            "admin", f"admin: first event of {path.split('/')[-1]}", _first(clients["admin"], path)
        )


def _view(database: Database) -> None:
    database.value(
        "select v.status from laneway.jobs_view v"
        " where v.id = (select id from laneway.jobs where seq = 100)"
    )


def _first(client: httpx2.Client, path: str) -> Callable[[], None]:
    def ask() -> None:
        with client.stream("GET", path) as answer:
            answer.raise_for_status()
            next(answer.iter_raw())

    return ask


def _timed(ask: Callable[[], object]) -> float:
    began = time.perf_counter()
    ask()
    return 1000 * (time.perf_counter() - began)


def _took(read: Read) -> float:
    """Time a read; if the first try is slow, take the median of several."""
    first = _timed(read.ask)
    return first if first < QUICK_MS else median(_timed(read.ask) for _ in range(TIMES))


def _commands(database: Database) -> dict[str, float]:
    """Seconds per command, including the start of Python."""
    commands = (
        ["jobs", "ls"], ["jobs", "ls", "--type", "never"], ["jobs", "ls", "--q", "never"],
        ["doctor"], ["admin", "workers"], ["top", "--once"], ["audit"],
    )  # fmt: skip
    took = {}
    for command in commands:

        def run(command: list[str] = command) -> None:
            subprocess.run(
                [sys.executable, "-m", "laneway", *command],
                cwd=ROOT,
                env=environment(database),
                capture_output=True,
                check=False,
            )

        took[f"laneway {' '.join(command)}"] = median(_timed(run) for _ in range(3))
    return took


@contextmanager
def served_reads(database: Database) -> Iterator[Iterator[Read]]:
    """Every read, of a server and principals that exist meanwhile."""
    tokens = make_tokens(database)
    with (
        serving(database, LANEWAY_SERVER_LEADS="false", LANEWAY_REQUESTS_PER_SECOND="0") as replica,
        ExitStack() as opened,
    ):
        clients = {
            who: opened.enter_context(
                httpx2.Client(
                    base_url=replica.url, headers={"Authorization": f"Bearer {token}"}, timeout=60
                )
            )
            for who, token in tokens.items()
        }
        yield _reads(database, clients)


def measure_in(database: Database, figures: Figures) -> dict[str, float]:
    took: dict[str, float] = {}
    with served_reads(database) as reads:
        for read in reads:
            try:
                took[read.name] = _took(read)
            except httpx2.HTTPStatusError as error:
                log(f"reads: {read.name}: {error}")
                took[read.name] = float("inf")
    slowest = sorted(took.items(), key=lambda one: -one[1])
    log(f"reads: {len(took)} measured; the slowest, in ms:")
    for name, ms in slowest[:SHOWN]:
        log(f"  {ms:8.1f}  {name}")
    for name, ms in _commands(database).items():
        log(f"  {ms:8.0f}  {name}")
    figures.put(slowest_read_ms=slowest[0][1], reads=len(took))
    return took


def measure(server: Server, figures: Figures, scale: Scale) -> None:
    database = server.database("bench_reads")
    job_history.fill(database, scale.reads_ended, scale.reads_waiting)
    log(f"reads: {scale.reads_ended:,} jobs have ended, {scale.reads_waiting:,} wait")
    measure_in(database, figures)
    server.drop(database)
