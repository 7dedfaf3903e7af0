"""The seam to the model providers. Put your clients behind `Provider`; the fake one is for trying.

The fake is deterministic, and reads three words in a text:

    busy   the first call is refused with a Retry-After, as an overloaded provider does
    slow   each call takes a second
    hold   the call ends when the file named by FAKE_PROVIDER_GATE exists
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from pathlib import Path
from typing import Protocol


class ProviderBusy(Exception):
    """The provider refused a call; `ctx.retry` waits at least `retry_after` seconds."""

    retry_after = 0.1


class Provider(Protocol):
    """The calls that the graph makes."""

    async def extract_concepts(self, text: str) -> list[str]: ...
    async def describe_image(self, url: str) -> str: ...
    async def embed(self, text: str) -> list[float]: ...


class FakeProvider:
    """Words of six letters or more are concepts; an embedding is a hash."""

    def __init__(self) -> None:
        self._refused: set[str] = set()

    async def extract_concepts(self, text: str) -> list[str]:
        words = re.findall(r"[a-z]+", text.lower())
        if "busy" in words and text not in self._refused:
            self._refused.add(text)
            raise ProviderBusy("429 Too Many Requests")
        if "slow" in words:
            await asyncio.sleep(1)
        gate = os.environ.get("FAKE_PROVIDER_GATE")
        while "hold" in words and gate and not Path(gate).exists():  # noqa: ASYNC110, ASYNC240
            await asyncio.sleep(0.05)
        return sorted({word for word in words if len(word) >= 6})

    async def describe_image(self, url: str) -> str:
        return "a picture of " + " and ".join(re.findall(r"[a-z]{3,}", url.lower()))

    async def embed(self, text: str) -> list[float]:
        return [byte / 255 for byte in hashlib.sha256(text.encode()).digest()[:4]]
