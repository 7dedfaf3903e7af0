"""Secrets of tokens, sessions and links: their form, the stored digest, and their expiry."""

from __future__ import annotations

import re
import secrets
from datetime import datetime
from hashlib import sha256
from typing import Final, Literal, NamedTuple

from laneway.domain.duration import DAY_S, HOUR_S

Purpose = Literal["token", "session", "link", "csrf"]

# Scanners recognize a leaked secret by its prefix, people its kind.
PREFIXES: Final[dict[Purpose, str]] = {
    "token": "lw_",
    "session": "lws_",
    "link": "lwl_",
    "csrf": "lwc_",
}
HINT_CHARS: Final = 6
# A token expires soon in its last week, or in the last quarter of a life shorter than four weeks.
SOON_S: Final = 7 * DAY_S
SOON_SHARE: Final = 0.25

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


class TokenExpiry(NamedTuple):
    """The end of a token's life, by the clock of the database."""

    at: datetime
    left_s: float
    life_s: float

    @property
    def soon_s(self) -> float | None:
        """The time left if the token expires soon, in whole days or hours; else None."""
        if self.left_s > min(SOON_S, self.life_s * SOON_SHARE):
            return None
        # Rounded, so that a reader notices a change once a day, at the end once an hour.
        unit = DAY_S if self.left_s >= DAY_S else HOUR_S
        return max(0.0, self.left_s // unit * unit)


def expiry_text(left_s: float) -> str:
    """`expires in 5 days`, as warnings say it."""
    if left_s < HOUR_S:
        return "expires within the hour"
    unit, name = (DAY_S, "day") if left_s >= DAY_S else (HOUR_S, "hour")
    count = int(left_s // unit)
    return f"expires in {count} {name}{'' if count == 1 else 's'}"


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
