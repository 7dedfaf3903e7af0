"""Calls about the caller and the server itself."""

from __future__ import annotations

from laneway.http import decode
from laneway.http.call import Call
from laneway.http.models import Health, Me, Readiness


def get_me() -> Call[Me]:
    """Return the principal of the token and its permissions."""
    return Call("GET", "/me", decode.body(Me))


def get_health() -> Call[Health]:
    """Check that the server responds."""
    return Call("GET", "/healthz", decode.body(Health))


def get_readiness() -> Call[Readiness]:
    """Check that the server reaches its database and that the schema fits."""
    return Call("GET", "/readyz", decode.body(Readiness))
