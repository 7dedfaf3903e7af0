"""The description of the API: OpenAPI for programs, a plain page for people."""

from __future__ import annotations

from html import escape
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, JSONResponse

from laneway import __version__
from laneway.api.http.auth import Caller, caller
from laneway.api.http.problems import Problem, errors
from laneway.api.http.responses import location

router = APIRouter(tags=["description"])

_SUMMARY = "Durable background jobs on the PostgreSQL you already have."
_REF = "#/components/schemas/{model}"


def describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of all routes, generated once."""
    if app.openapi_schema is None:
        made = get_openapi(
            title="Laneway", version=__version__, summary=_SUMMARY, routes=app.routes
        )
        # Routes refer to Problem but have no response model of it, so FastAPI omits it.
        schemas = made.setdefault("components", {}).setdefault("schemas", {})
        problem = Problem.model_json_schema(ref_template=_REF)
        schemas.update(problem.pop("$defs", {}))
        schemas["Problem"] = problem
        app.openapi_schema = made
    return app.openapi_schema


@router.get(
    "/openapi.json",
    operation_id="get_openapi",
    response_class=JSONResponse,
    responses={200: {"description": "OpenAPI 3.1"}, **errors()},
)
async def get_description(
    request: Request, who: Annotated[Caller, Depends(caller)]
) -> JSONResponse:
    """This document."""
    return JSONResponse({**describe(request.app), **_servers(request)})


def _servers(request: Request) -> dict[str, Any]:
    """The `servers` member, if the API is mounted under a prefix."""
    root = location(request, "")
    return {"servers": [{"url": root}]} if root else {}


@router.get(
    "/docs",
    operation_id="get_docs",
    response_class=HTMLResponse,
    responses={200: {"description": "A page without scripts"}, **errors()},
)
async def get_docs(request: Request, who: Annotated[Caller, Depends(caller)]) -> HTMLResponse:
    """List every route with its description, for people."""
    rows = "\n".join(_rows(describe(request.app), location(request, "")))
    return HTMLResponse(
        f"<!doctype html><html lang=en><meta charset=utf-8><title>Laneway API</title>"
        f"<h1>Laneway {escape(__version__)}</h1><p>{escape(_SUMMARY)}</p>"
        f"<table><tr><th>method<th>path<th>\n{rows}</table></html>"
    )


def _rows(document: dict[str, Any], root: str) -> list[str]:
    return [
        f"<tr><td>{method.upper()}<td><code>{escape(root + path)}</code>"
        f"<td>{escape(operation.get('description', ''))}"
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]
