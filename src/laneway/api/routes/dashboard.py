"""The dashboard: built files that contain no data, so they need no token.

Every address in a page is relative, and pages may be requested at any depth. So the dashboard works
under any prefix: mounted, with `root_path`, or behind a proxy that strips a prefix unannounced.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from laneway.api.http.problems import problem_responses
from laneway.errors import NotFound

router = APIRouter(tags=["dashboard"])

# Built by scripts/dashboard.sh; not in git.
STATIC: Final = Path(__file__).resolve().parent.parent / "static"
_ASSETS: Final = "assets/"
# The operating system's table differs between machines. Other files are not served.
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".md": "text/markdown; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
# One short segment that does not begin with a dot: no name leads to another directory.
_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,120}\.[a-z0-9]{2,5}")
# The build puts a digest of the content into the names of assets.
_FOREVER: Final = "public, max-age=31536000, immutable"
_AN_HOUR: Final = "public, max-age=3600"
# Pages are at most three segments deep; each segment more makes the response longer.
_DEEPEST: Final = 8
_RELATIVE: Final = re.compile(rb'((?:href|src)=")\./')
_UNBUILT: Final = (
    b"<!doctype html><html lang=en><meta charset=utf-8><title>Laneway</title>"
    b"<h1>Laneway</h1><p>This installation has no dashboard, because its files were not built. "
    b"In a source checkout, build them with <code>scripts/dashboard.sh build</code> and reload.</p>"
    b'<p>Until then, use <a href="./../docs">the HTTP API</a>, '
    b"or <code>laneway top</code> in a terminal.</p></html>"
)
_FILES: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "A page, or one of its files",
        "content": {"text/html": {}, "*/*": {}},
    },
    **problem_responses(404, 422),
}


class Bundle:
    """The built files in a directory, read at each request: a new build needs no restart."""

    def __init__(self, folder: Path = STATIC) -> None:
        self._folder = folder

    def page(self, depth: int) -> bytes:
        """The page, with addresses for a path that is `depth` segments below /ui/."""
        try:
            page = (self._folder / "index.html").read_bytes()
        except OSError:
            page = _UNBUILT
        return _RELATIVE.sub(rb"\g<1>" + (b"../" * depth or b"./"), page)

    def file(self, name: str, *, gzip: bool) -> tuple[bytes, dict[str, str]] | None:
        """The content and the headers of a file, or None if it does not exist."""
        is_asset = name.startswith(_ASSETS)
        base = name.removeprefix(_ASSETS)
        path = self._folder / name
        if not _NAME.fullmatch(base) or path.suffix not in _TYPES or not path.is_file():
            return None
        headers = {
            "Content-Type": _TYPES[path.suffix],
            "Cache-Control": _FOREVER if is_asset else _AN_HOUR,
        }
        compressed = path.with_name(f"{path.name}.gz")
        if compressed.is_file():
            headers["Vary"] = "Accept-Encoding"
            if gzip:
                return compressed.read_bytes(), {**headers, "Content-Encoding": "gzip"}
        return path.read_bytes(), headers


_REDIRECT: Final[dict[str, Any]] = {
    "status_code": 307,
    "response_class": RedirectResponse,
    "responses": {307: {"description": "The dashboard is at /ui/"}},
}


@router.get("/", operation_id="find_dashboard", **_REDIRECT)
async def find_dashboard() -> RedirectResponse:
    """Redirect to the dashboard."""
    return RedirectResponse("ui/", 307)


@router.head("/", operation_id="check_root", **_REDIRECT)
async def check_root() -> RedirectResponse:
    """Redirect to the dashboard: monitors and link checkers ask for headers only."""
    return RedirectResponse("ui/", 307)


@router.get("/ui", operation_id="open_dashboard", **_REDIRECT)
async def open_dashboard() -> RedirectResponse:
    """Redirect to the dashboard."""
    return RedirectResponse("ui/", 307)


@router.get(
    "/ui/{path:path}",
    operation_id="show_dashboard",
    response_class=HTMLResponse,
    responses=_FILES,
)
async def show_dashboard(request: Request, path: str) -> Response:
    """Show the dashboard, which reads its screen from the path, or return one of its files."""
    return await _respond(request, path)


@router.head(
    "/ui/{path:path}",
    operation_id="check_dashboard",
    response_class=HTMLResponse,
    responses=_FILES,
)
async def check_dashboard(request: Request, path: str) -> Response:
    """Return the headers of a page or a file of the dashboard."""
    found = await _respond(request, path)
    return Response(status_code=found.status_code, headers=dict(found.headers))


async def _respond(request: Request, path: str) -> Response:
    bundle: Bundle = request.app.state.bundle
    gzip = _accepts_gzip(request.headers.get("accept-encoding", ""))
    found = await asyncio.to_thread(bundle.file, path, gzip=gzip)
    if found is not None:
        content, headers = found
        return Response(content, headers=headers)
    depth = _depth(request, path)
    if path.startswith(_ASSETS) or depth > _DEEPEST:
        raise NotFound("no such page or file of the dashboard", kind="file", name=path)
    return HTMLResponse(await asyncio.to_thread(bundle.page, depth))


def _accepts_gzip(header: str) -> bool:
    offers = (offer.replace(" ", "").lower().partition(";q=") for offer in header.split(","))
    return any(name == "gzip" and (not q or q.strip("0.") != "") for name, _, q in offers)


def _depth(request: Request, path: str) -> int:
    """The number of slashes below /ui/ in the browser's address.

    An encoded slash, as in the name of a lane, separates nothing there.
    """
    slashes = path.count("/")
    raw = request.scope.get("raw_path")
    if not raw:
        return slashes
    encoded = 0
    for depth, segment in enumerate(reversed(raw.split(b"/"))):
        encoded += unquote(segment.decode("latin-1")).count("/")
        if depth + encoded >= slashes:
            return depth
    return slashes
