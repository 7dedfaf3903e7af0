"""Calls about the caller, the audit and the server itself."""

from __future__ import annotations

from laneway.domain.audit import AuditEntry, AuditFilter
from laneway.http import decode
from laneway.http.call import Call, Listing, query_params
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


def list_acts(wanted: AuditFilter | None = None) -> Listing[AuditEntry]:
    """List audit entries that match every given field, newest first."""
    names = (
        "actor",
        "door",
        "action",
        "kind",
        "name",
        "workspace",
        "outcome",
        "since",
        "newer_than",
    )
    chosen = wanted or AuditFilter()
    given = query_params({name: getattr(chosen, name) for name in names})
    return Listing("/admin/audit", lambda item: decode.read(AuditEntry, item), given)
