"""Secrets struck out of text that people will read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Final
from urllib.parse import unquote, urlsplit

from laneway.domain.token import PREFIXES

HIDDEN: Final = "***"
# Shorter ones may be part of any word.
_SHORTEST: Final = 4
_TOKEN: Final = re.compile(
    rf"\b({'|'.join(sorted(PREFIXES.values(), reverse=True))})[A-Za-z0-9_-]{{20,}}"
)
_URL_PASSWORD: Final = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s:/@]*:)[^\s@]+(@)", re.IGNORECASE)
_PASSWORD: Final = re.compile(
    r"(\b(?:ssl)?password\s*=\s*)('(?:[^'\\]|\\.)*'?|[^\s&'\"]+)", re.IGNORECASE
)
_BEARER: Final = re.compile(r"(\bbearer\s+)[^\s'\",]+", re.IGNORECASE)


class Redaction:
    """Strikes out what looks like a secret, and the passwords of these connection strings."""

    def __init__(self, dsns: Iterable[str | None] = ()) -> None:
        known = {secret for dsn in dsns if dsn for secret in _passwords(dsn)}
        longest_first = sorted(known, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, longest_first))) if known else None

    def __call__(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        text = _TOKEN.sub(rf"\1{HIDDEN}", text)
        text = _URL_PASSWORD.sub(rf"\1{HIDDEN}\2", text)
        text = _PASSWORD.sub(rf"\1{HIDDEN}", text)
        return _BEARER.sub(rf"\1{HIDDEN}", text)


def _passwords(dsn: str) -> set[str]:
    """As they are written, and as they are meant."""
    found = {match[2].strip("'") for match in _PASSWORD.finditer(dsn)}
    with suppress(ValueError):
        found.add(urlsplit(dsn).password or "")
    return {one for each in found for one in (each, unquote(each)) if len(one) >= _SHORTEST}
