"""Secrets of tokens, sessions and links: their form, and the digest that is stored."""

from __future__ import annotations

import re
import secrets
from hashlib import sha256
from typing import Final, Literal, NamedTuple

Purpose = Literal["token", "session", "link", "csrf"]

# Scanners recognize a leaked secret by its prefix, people its kind.
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
    """A secret to show once, and its digest to store."""

    text: str
    digest: bytes

    @property
    def hint(self) -> str:
        """The beginning, by which people distinguish tokens."""
        return self.text[:HINT_CHARS]


def new_secret(purpose: Purpose = "token") -> Secret:
    """A new secret: 256 random bits after their prefix."""
    text = PREFIXES[purpose] + secrets.token_urlsafe(_BYTES)
    return Secret(text, _digest(text))


def digest_of(text: object, purpose: Purpose = "token") -> bytes | None:
    """The stored digest of a secret; None if the text cannot be one."""
    prefix = PREFIXES[purpose]
    if not isinstance(text, str) or not text.startswith(prefix):
        return None
    return _digest(text) if _RANDOM.fullmatch(text, len(prefix)) else None


def _digest(text: str) -> bytes:
    # Plain SHA-256 is enough: 256 random bits cannot be guessed.
    return sha256(text.encode("ascii")).digest()
