"""The seam to the embedding service. Put your client behind `Embedder`; the fake is for trying.

The fake is deterministic, and reads two words in a text:

    slow   the call takes a second
    hold   the call ends when the file named by FAKE_EMBEDDER_GATE exists
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path
from typing import Protocol


class Embedder(Protocol):
    async def embed(self, text: str) -> list[float]: ...


class FakeEmbedder:
    async def embed(self, text: str) -> list[float]:
        if "slow" in text.split():
            await asyncio.sleep(1)
        gate = os.environ.get("FAKE_EMBEDDER_GATE")
        while "hold" in text.split() and gate and not Path(gate).exists():  # noqa: ASYNC110, ASYNC240
            await asyncio.sleep(0.05)
        return [byte / 255 for byte in hashlib.sha256(text.encode()).digest()[:8]]
