"""The pages of the login: a form that follows a one-time link, and what to do without one."""

from __future__ import annotations

from html import escape
from typing import Final

from fastapi import Request
from fastapi.responses import HTMLResponse

_COMMAND: Final = "laneway principals login NAME"
# Relative addresses: the page works below any prefix.
_FRAME: Final = (
    "<!doctype html>\n"
    '<html lang="en">\n'
    "<head>\n"
    '<meta charset="utf-8">\n'
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    '<meta name="color-scheme" content="light dark">\n'
    '<meta name="robots" content="noindex">\n'
    '<link rel="icon" href="ui/icon.svg" type="image/svg+xml">\n'
    '<link rel="stylesheet" href="ui/login.css">\n'
    "<title>{title} · Laneway</title>\n"
    "</head>\n"
    "<body>\n"
    "<main>\n"
    '<p class="brand"><img src="ui/icon.svg" alt="" width="32" height="32">Laneway</p>\n'
    "<h1>{title}</h1>\n"
    "{content}"
    "</main>\n"
    "</body>\n"
    "</html>\n"
)
_NEW_LINK: Final = (
    "<h2>Get a link</h2>\n"
    "<p>Run this where the server's database is configured, with your name as"
    " <code>laneway principals ls</code> shows it:</p>\n"
    f"<pre><code>{_COMMAND}</code></pre>\n"
    "<p>The link works once, within ten minutes.</p>\n"
)
_IGNORED: Final = (
    "<p>This address asks to open a page that is not part of the dashboard. Signing in opens the"
    " start page instead.</p>\n"
)
_OTHER_WAY: Final = '<p class="other"><a href="ui/">Sign in with a token</a></p>\n'


def wants_html(request: Request) -> bool:
    """Whether the caller is a browser that shows a page; programs get a problem."""
    return "text/html" in request.headers.get("accept", "").lower()


def form_page(link: str, following: str | None, *, ignores_target: bool = False) -> HTMLResponse:
    """A button that logs in with the link; without one, how to get it."""
    notice = _IGNORED if ignores_target else ""
    if not link:
        content = f"{notice}<p>You need a sign-in link, or a token.</p>\n{_NEW_LINK}{_OTHER_WAY}"
        return _page("Sign in", content)
    fields = f'<input type="hidden" name="link" value="{escape(link)}">\n'
    if following is not None:
        fields += f'<input type="hidden" name="next" value="{escape(following)}">\n'
    content = (
        f"{notice}<p>This link signs you in once, in this browser.</p>\n"
        f'<form method="post" action="login">\n{fields}'
        '<button type="submit" autofocus>Sign in</button>\n</form>\n'
    )
    return _page("Sign in", content)


def refused_page(status: int, detail: str) -> HTMLResponse:
    """Why the login did not work, and what to do."""
    if status == 401:
        content = (
            "<p>This sign-in link was used before, has expired, or is incomplete.</p>\n"
            '<p>If you are signed in already, <a href="ui/">open the dashboard</a>.</p>\n'
        )
        return _page("This link does not work", content + _NEW_LINK + _OTHER_WAY, status)
    content = f"<p>{escape(detail)}</p>\n"
    if status in (429, 503):
        content += "<p>Wait a moment, then open your link again. It still works.</p>\n"
    return _page("Signing in failed", content + _NEW_LINK + _OTHER_WAY, status)


def _page(title: str, content: str, status: int = 200) -> HTMLResponse:
    page = _FRAME.format(title=escape(title), content=content)
    # Without a referrer, browsers send `Origin: null` with the form.
    return HTMLResponse(page, status, headers={"Referrer-Policy": "same-origin"})
