"""Browser sessions and the login links that open them, as statements."""

from __future__ import annotations

from uuid import UUID

from laneway.domain.permissions import Access
from laneway.store.access import grants_of
from laneway.store.statement import Row, Statement, nothing, one


def authenticate(digest: bytes, idle_s: float) -> Statement[Access | None]:
    """The principal of a session; None for an invalid one or one idle for `idle_s`."""
    params = {"digest": digest, "idle_s": idle_s}
    return Statement("access/authenticate_session", _by_session, params)


def _by_session(rows: list[Row]) -> Access | None:
    if not rows:
        return None
    principal_id, name, kind, csrf = rows[0][:4]
    return Access(principal_id, name, kind, grants_of(rows, 4), csrf=csrf)


def create_link(principal_id: UUID, digest: bytes, life_s: float) -> Statement[None]:
    """Stores a login link that opens one session."""
    params = {"principal": principal_id, "digest": digest, "life_s": life_s}
    return Statement("access/create_link", nothing, params)


def open_session(
    link: bytes, digest: bytes, csrf: str, life_s: float, replaces: bytes | None
) -> Statement[bool]:
    """Opens a session and uses up its link; False when the link is invalid."""
    params = {
        "link": link,
        "digest": digest,
        "csrf": csrf,
        "life_s": life_s,
        "replaces": replaces,
    }
    return Statement("access/open_session", bool, params)


def close_session(digest: bytes) -> Statement[Row | None]:
    """Ends a session; returns the id and name of its principal."""
    return Statement("access/close_session", one, {"digest": digest})
