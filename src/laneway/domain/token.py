"""Secrets: what they look like, and what of them is kept."""

from __future__ import annotations

import re
import secrets
from hashlib import sha256
from typing import Final, Literal, NamedTuple

Purpose = Literal["token", "session", "link", "csrf"]

# So that a scanner knows a leaked one, and a person which kind it is.
PREFIXES: Final[dict[Purpose, str]] = {
    "token": "lw_",
    "session": "lws_",
    "link": "lwl_",
    "csrf": "lwc_",
}
HINT_CHARS: Final = 6

_BYTES: Final = 32
_RANDOM: Final = re.compile(r"[A-Za-z0-9_-]{43}")


class Secret(NamedTuple):
    """A secret to show once, and its digest to keep."""

    text: str
    digest: bytes

    @property
    def hint(self) -> str:
        """The beginning, by which a person tells tokens apart."""
        return self.text[:HINT_CHARS]


def new_secret(purpose: Purpose = "token") -> Secret:
    """256 random bits behind their prefix."""
    text = PREFIXES[purpose] + secrets.token_urlsafe(_BYTES)
    return Secret(text, _digest(text))


def digest_of(text: object, purpose: Purpose = "token") -> bytes | None:
    """What finds a secret again; None for what cannot be one."""
    prefix = PREFIXES[purpose]
    if not isinstance(text, str) or not text.startswith(prefix):
        return None
    return _digest(text) if _RANDOM.fullmatch(text, len(prefix)) else None


def _digest(text: str) -> bytes:
    # Plain SHA-256 is enough: nobody guesses 256 random bits.
    return sha256(text.encode("ascii")).digest()
