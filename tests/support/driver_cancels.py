"""Requests of the driver to cancel a statement, each of which may take 10 s."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest


def note_cancels(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A list to which each later request adds its timeout; none is sent."""
    asked: list[float] = []

    async def note(self: psycopg.AsyncConnection[Any], *, timeout: float = 30.0) -> None:
        asked.append(timeout)

    monkeypatch.setattr(psycopg.AsyncConnection, "cancel_safe", note)
    return asked
