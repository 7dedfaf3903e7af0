"""The mark of the handler that holds the event loop."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator

import pytest

from laneway import forks
from laneway.engine.process.loop_marker import SIZE, LoopMarker


@pytest.fixture
def marker() -> Iterator[LoopMarker]:
    with tempfile.TemporaryFile() as file:
        file.write(b"\0" * SIZE)
        file.flush()
        made = LoopMarker(file.fileno())
        yield made
        made.close()


@pytest.mark.parametrize("raises", [False, True], ids=["returns", "raises"])
async def test_forked_child_leaves_the_mark_of_its_parent(marker: LoopMarker, raises: bool) -> None:
    loop = asyncio.get_running_loop()

    async def handler() -> int:
        child = os.fork()
        if child == 0:
            if raises:
                raise RuntimeError
            return 0
        os.waitpid(child, 0)
        return marker.read()

    forks.enter(loop)
    try:
        seen = await marker.watch(7, handler())
    finally:
        if forks.is_fork:
            os._exit(0)
        forks.leave(loop)
    assert seen == 7
    assert marker.read() == 0
