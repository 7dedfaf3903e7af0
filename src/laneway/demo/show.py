"""What happens in which order: home, server, workers, workload, and all of it down again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from rich.console import Console

from laneway.demo.home import env_file, private_home, server_dir
from laneway.embedded import EmbeddedPostgres
from laneway.store.migrate import migrate

# Nothing here outlives the run, so nothing needs to survive a power cut.
SERVER = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "60",
    "dynamic_shared_memory_type": "mmap",
}
# Crashes are noticed within seconds instead of half a minute, so that one can watch it.
WORKERS = {
    "LANEWAY_LEADER_TTL": "1.5",
    "LANEWAY_WATCHDOG_INTERVAL": "0.5",
    "LANEWAY_CANCEL_GRACE": "1",
    "LANEWAY_SHUTDOWN_GRACE": "0.3",
    "LANEWAY_THREADS": "4",
}
_KEPT = ("LANEWAY_PG_BIN", "LANEWAY_DEBUG")
INTERRUPTED = 130


def run(once: bool, color: bool) -> int:
    """Runs the demo; the exit code."""
    console = Console(
        highlight=False, markup=False, emoji=False, soft_wrap=False, no_color=not color or None
    )
    try:
        with private_home() as home, _surroundings(home):
            return asyncio.run(_play(once, home, console))
    except KeyboardInterrupt:  # before or after the time in which signals are handled
        return INTERRUPTED if once else 0


@contextlib.contextmanager
def _surroundings(home: Path) -> Iterator[None]:
    """An environment in which nobody's settings but ours count, here and in the workers."""
    before = dict(os.environ)
    for name in before:
        if name.startswith(("LANEWAY_", "PG", "DATABASE_URL")) and name not in _KEPT:
            del os.environ[name]
    settings = home / "laneway.toml"
    settings.touch()
    os.environ.update(WORKERS, LANEWAY_CONFIG=str(settings))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


async def _play(once: bool, home: Path, console: Console) -> int:
    told, hurry = asyncio.Event(), asyncio.Event()

    def on_signal() -> None:
        (hurry if told.is_set() else told).set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)
    playing = asyncio.create_task(_perform(once, home, console, hurry))
    stopping = asyncio.create_task(told.wait())
    await asyncio.wait({playing, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if playing.done():
        return playing.result()
    if not console.is_terminal:
        console.print("stopping")
    playing.cancel()
    try:
        return await playing
    except asyncio.CancelledError:
        console.print("Stopped; nothing is left running.")
        return INTERRUPTED if once else 0


async def _perform(once: bool, home: Path, console: Console, hurry: asyncio.Event) -> int:
    began = time.monotonic()
    console.print("Starting PostgreSQL in a directory of its own …")
    async with _server(home) as dsn:
        os.environ["LANEWAY_DATABASE_URL"] = dsn
        _write_env_file(home, dsn)
        # Only now: the application reads its settings when it is imported.
        from laneway.demo.run import DemoRun

        performance = DemoRun(home, console, hurry)
        return await performance.run(once, began)


@contextlib.asynccontextmanager
async def _server(home: Path) -> AsyncIterator[str]:
    postgres = EmbeddedPostgres(server_dir(home), settings=SERVER)

    starting = asyncio.ensure_future(asyncio.to_thread(postgres.start))
    try:
        dsn = await asyncio.shield(starting)
        await asyncio.to_thread(migrate, dsn)
        yield dsn
    finally:
        # A thread cannot be interrupted, and what it starts must be stopped.
        await asyncio.wait({starting})
        await asyncio.to_thread(postgres.stop)


def _write_env_file(home: Path, dsn: str) -> None:
    path = env_file(home)
    path.touch(mode=0o600)
    programs = shlex.quote(str(Path(sys.executable).parent))
    path.write_text(
        f'export LANEWAY_DATABASE_URL={shlex.quote(dsn)}\nexport PATH={programs}:"$PATH"\n', "utf-8"
    )
