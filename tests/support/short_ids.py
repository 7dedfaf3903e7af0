"""Job ids as the dashboard shortens them."""

from __future__ import annotations

from uuid import UUID


def short_form(job_id: UUID) -> str:
    """The time of the id and its end: `019a93c4-1234…6789ab`."""
    return f"{str(job_id)[:13]}…{job_id.hex[-6:]}"
