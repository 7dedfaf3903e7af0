"""What a browser finds at the root: the way to the dashboard, and who stands in for it."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from laneway.api.http.responses import location

router = APIRouter(tags=["dashboard"])

_PAGE: Final = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>Laneway</title>"
    "<h1>Laneway</h1><p>This version has no dashboard yet. "
    "<a href=../docs>The HTTP API</a> has all that it would show, "
    "and <code>laneway top</code> shows it in a terminal.</html>"
)


@router.get(
    "/",
    operation_id="find_dashboard",
    status_code=307,
    response_class=RedirectResponse,
    responses={307: {"description": "The dashboard is at /ui/"}},
)
async def find_dashboard(request: Request) -> RedirectResponse:
    """Where the dashboard is."""
    return RedirectResponse(location(request, "/ui/"), 307)


@router.get(
    "/ui/",
    operation_id="show_dashboard",
    response_class=HTMLResponse,
    responses={200: {"description": "A page without scripts"}},
)
async def show_dashboard() -> HTMLResponse:
    """The dashboard; until there is one, a page that says so."""
    return HTMLResponse(_PAGE)
