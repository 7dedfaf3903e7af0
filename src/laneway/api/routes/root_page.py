"""The root path, which redirects to the dashboard, and a placeholder for the dashboard."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from laneway.api.http.responses import location

router = APIRouter(tags=["dashboard"])

_PAGE: Final = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>Laneway</title>"
    "<h1>Laneway</h1><p>This version has no dashboard yet. "
    "Use <a href=../docs>the HTTP API</a>, "
    "or <code>laneway top</code> in a terminal.</html>"
)


@router.get(
    "/",
    operation_id="find_dashboard",
    status_code=307,
    response_class=RedirectResponse,
    responses={307: {"description": "The dashboard is at /ui/"}},
)
async def find_dashboard(request: Request) -> RedirectResponse:
    """Redirect to the dashboard."""
    return RedirectResponse(location(request, "/ui/"), 307)


@router.get(
    "/ui/",
    operation_id="show_dashboard",
    response_class=HTMLResponse,
    responses={200: {"description": "A page without scripts"}},
)
async def show_dashboard() -> HTMLResponse:
    """Show the dashboard, or a page that says that this version has none."""
    return HTMLResponse(_PAGE)
