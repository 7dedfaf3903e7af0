"""Builds the application: routers, error handlers and the state that requests share."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, FastAPI

from laneway.api.http import problems
from laneway.api.http.full_principals import FullPrincipals
from laneway.api.http.group_commit import GroupCommit
from laneway.api.http.middleware import RequestMiddleware
from laneway.api.http.read_slots import ReadSlots
from laneway.api.routes import (
    bulk,
    changes,
    counts,
    dashboard,
    declared,
    description,
    drains,
    events,
    flows,
    health,
    job_types,
    jobs,
    limits,
    login,
    me,
    metrics,
    storage,
    submission,
    workers,
)
from laneway.api.routes.health import ReadinessCheck
from laneway.api.routes.metrics import ClusterFigures
from laneway.client import Client
from laneway.config.settings import Settings
from laneway.control.bulk_runs import BulkRuns
from laneway.control.credential_cache import CredentialCache
from laneway.control.throttle import Throttle
from laneway.store.database import Database
from laneway.streams.hub import Hub

# The first match wins: /jobs/bulk and /jobs/counts come before /jobs/{job_id}.
ROUTERS: Final[tuple[APIRouter, ...]] = (
    submission.plain,
    health.router,
    metrics.router,
    dashboard.router,
    description.router,
    me.router,
    login.router,
    submission.router,
    bulk.router,
    counts.router,
    jobs.router,
    events.router,
    flows.router,
    flows.streams,
    declared.flows,
    declared.sent_events,
    declared.lanes,
    workers.router,
    drains.router,
    job_types.router,
    declared.gate_and_stats,
    storage.router,
    limits.router,
    declared.schedules,
    declared.webhooks,
    declared.access,
    declared.audit,
    changes.router,
)


def make_app(settings: Settings, database: Database, client: Client | None = None) -> FastAPI:
    """The API on a database. The caller closes the database, after `app.state.close()`.

    `client`: a client that knows the application's handlers; the default one knows published types.
    """
    own = client or Client(database, settings)
    app = FastAPI(
        title="Laneway",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.settings = settings
    app.state.database = database
    app.state.client = own
    app.state.bundle = dashboard.Bundle()
    app.state.credentials = CredentialCache(database)
    app.state.throttle = Throttle(settings)
    app.state.readiness = ReadinessCheck(database)
    app.state.bulk_runs = BulkRuns(database, lambda digests: app.state.credentials.review(digests))
    app.state.hub = Hub(database, settings, lambda digests: app.state.credentials.review(digests))
    app.state.cluster_figures = ClusterFigures(database, app.state.readiness)
    app.state.full_principals = FullPrincipals()
    app.state.group_commit = GroupCommit(database, app.state.full_principals)
    app.state.read_slots = ReadSlots(settings.max_reads_per_principal)

    async def close() -> None:
        await app.state.hub.close()
        await app.state.bulk_runs.close()
        await app.state.group_commit.close()
        if client is None:
            await own.close()

    app.state.close = close
    problems.install(app)
    for router in ROUTERS:
        # `include_router` would search every router on each request.
        app.router.routes.extend(router.routes)
    app.add_middleware(RequestMiddleware, settings=settings)
    return app
