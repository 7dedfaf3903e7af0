"""Browser sessions: a one-time link logs in and sets a cookie that scripts cannot read."""

from __future__ import annotations

import asyncio
import re
from typing import Annotated, Any, Final
from urllib.parse import parse_qs, unquote

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from laneway.api.http.auth import (
    Caller,
    address_of,
    caller,
    check_origin,
    cookie_name,
    session_secret,
)
from laneway.api.http.bodies import GONE
from laneway.api.http.problems import errors, problem_responses, refusal
from laneway.api.http.responses import location
from laneway.api.routes.login_page import form_page, refused_page, wants_html
from laneway.control import sessions as verbs
from laneway.control.throttle import Throttle
from laneway.domain.actor import Actor
from laneway.errors import InvalidInput, LanewayError
from laneway.store.database import Database

router = APIRouter(tags=["access"])

DASHBOARD: Final = "/ui/"
_LONGEST: Final = 512
_LONGEST_PATH: Final = 2000
# Characters that a browser sends as they are; no fragment, backslash or second slash at the start.
_PATH: Final = re.compile(r"/ui/[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*")
# Short, because the caller is not authenticated yet.
PATIENCE_S: Final = 10.0
_FORM: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/x-www-form-urlencoded": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "link": {"type": "string", "maxLength": _LONGEST},
                        "next": {
                            "type": "string",
                            "maxLength": _LONGEST_PATH,
                            "description": "Where to go then, below /ui/",
                        },
                    },
                    "required": ["link"],
                }
            }
        },
    }
}


@router.get(
    "/login",
    operation_id="show_login",
    response_class=HTMLResponse,
    responses={200: {"description": "A form that logs in"}, **problem_responses(422)},
)
async def show_login(
    request: Request,
    link: Annotated[str, Query(max_length=_LONGEST, description="The secret of a link")] = "",
    following: Annotated[
        str | None,
        Query(alias="next", description="Where to go then, below /ui/"),
    ] = None,
) -> HTMLResponse:
    """Show the login form. Opening the link changes nothing: mail programs open links too."""
    try:
        return form_page(link, _checked_path(following))
    except InvalidInput:
        if not wants_html(request):
            raise
        return form_page(link, None, ignores_target=True)


@router.post(
    "/login",
    operation_id="log_in",
    status_code=303,
    response_class=Response,
    openapi_extra=_FORM,
    responses={
        303: {"description": "Logged in: the cookie is set. On to the dashboard"},
        **problem_responses(401, 403, 413, 422, 429, 503),
    },
)
async def log_in(request: Request) -> Response:
    """Log in with a one-time link; the browser's previous session ends.

    A browser is shown a page if the link does not work.
    """
    try:
        return await _log_in(request)
    except LanewayError as error:
        refused = refusal(request, error)
        if refused is None or not wants_html(request):
            raise
        page = refused_page(refused.status_code, str(error))
        if "retry-after" in refused.headers:
            page.headers["retry-after"] = refused.headers["retry-after"]
        return page


async def _log_in(request: Request) -> Response:
    check_origin(request)
    previous = session_secret(request)
    throttle: Throttle = request.app.state.throttle
    address = address_of(request)
    try:
        async with asyncio.timeout(PATIENCE_S):
            sent = await request.body()
        form = parse_qs(sent.decode("ascii"), max_num_fields=10)
    except TimeoutError:
        raise InvalidInput("body", f"did not arrive within {PATIENCE_S:g} s") from None
    except ValueError:
        raise InvalidInput("body", "must be a form") from None
    following = _checked_path(form.get("next", [""])[0])
    actor = Actor(
        "nobody",
        door="ui",
        request_id=request.scope["state"]["request_id"],
        address=address,
    )
    link = form.get("link", [""])[0]
    database: Database = request.app.state.database
    opened = await throttle.check(
        address,
        lambda: verbs.open_session(database, link, by=actor, replaces=previous),
        is_known=False,
        is_gone=request.scope.get(GONE),
    )
    if previous is not None:
        request.app.state.credentials.forget_session(previous)
    # Relative: a proxy may strip a prefix that the server does not know.
    response = RedirectResponse((following or DASHBOARD).removeprefix("/"), 303)
    response.set_cookie(
        cookie_name(request),
        opened.cookie,
        max_age=int(verbs.SESSION_LIFE_S),
        path=location(request, "/"),
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )
    return response


def _checked_path(given: str | None) -> str | None:
    """A path of the dashboard, so that a link leads nowhere else."""
    if not given:
        return None
    path = unquote(given.partition("?")[0])
    is_below = len(given) <= _LONGEST_PATH and _PATH.fullmatch(given) is not None
    if not is_below or any(part in (".", "..") for part in path.split("/")):
        raise InvalidInput("next", f"must be a path below {DASHBOARD}")
    return given


@router.post(
    "/logout",
    operation_id="log_out",
    status_code=204,
    response_class=Response,
    responses=errors(),
)
async def log_out(
    request: Request,
    who: Annotated[Caller, Depends(caller)],
) -> Response:
    """End the browser's session."""
    secret = session_secret(request)
    if secret is not None:
        await verbs.close_session(request.app.state.database, secret, by=who.actor)
        request.app.state.credentials.forget_session(secret)
    response = Response(status_code=204)
    response.delete_cookie(
        cookie_name(request),
        path=location(request, "/"),
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )
    return response
