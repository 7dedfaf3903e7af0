"""Handlers that fork, start process pools and change signal dispositions."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from laneway import Context, Laneway, SyncContext
from laneway.engine.process import deadline
from tests.support.worker_harness import SOON

lw = Laneway()
if "FORK_APP_EXIT_S" in os.environ:
    # So that a test need not wait for as long as people would.
    deadline.CHILDREN_S = 0.5
    deadline.EXIT_S = float(os.environ["FORK_APP_EXIT_S"])


def wait_for_end(pid: int) -> int:
    """Exit code of a forked child; a signal that ended it is negative."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def fork_sleeper() -> int:
    """Fork a child that sleeps and never returns from here."""
    pid = os.fork()
    if pid == 0:
        time.sleep(120)
        os._exit(0)
    return pid


@lw.handler("pid")
async def pid(ctx: Context) -> int:
    return os.getpid()


@lw.handler("wait", retry=SOON)
async def wait(ctx: Context) -> None:
    await ctx.save([os.getpid()])
    await asyncio.Event().wait()


@lw.handler("fork_and_wait", retry=SOON)
async def fork_and_wait(ctx: Context) -> int:
    if ctx.attempt > 1:
        return ctx.attempt
    await ctx.save([os.getpid(), fork_sleeper()])
    await asyncio.Event().wait()
    return 0


@lw.handler("c_fork_and_wait", retry=SOON)
async def c_fork_and_wait(ctx: Context) -> int:
    """As a library in C does it: Python and its hooks do not know."""
    if ctx.attempt > 1:
        return ctx.attempt
    child = ctypes.PyDLL(None).fork()
    if child == 0:
        time.sleep(120)  # noqa: ASYNC251 -- another process
        os._exit(0)
    await ctx.save([os.getpid(), child])
    await asyncio.Event().wait()
    return 0


@lw.handler("pool_and_wait", retry=SOON)
async def pool_and_wait(ctx: Context) -> int:
    if ctx.attempt > 1:
        return ctx.attempt
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        helper = await asyncio.wrap_future(pool.submit(os.getpid))
        await ctx.save([os.getpid(), helper])
        await asyncio.wrap_future(pool.submit(time.sleep, 120))
    return 0


@lw.handler("thread_pool_and_wait", retry=SOON)
def thread_pool_and_wait(ctx: SyncContext) -> int:
    if ctx.attempt > 1:
        return ctx.attempt
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        ctx.save([os.getpid(), pool.submit(os.getpid).result()])
        pool.submit(time.sleep, 120).result()
    return 0


# -- forks that leave the handler -----------------------------------------------------------------


def leave(how: str) -> str:
    if how == "raise":
        raise ValueError("in the forked child")
    if how == "exit":
        raise SystemExit(7)
    return "from the forked child"


async def forking(ctx: Context, how: str) -> list[object]:
    pid = os.fork()
    if pid == 0:
        return [leave(how)]
    return ["parent", await asyncio.to_thread(wait_for_end, pid)]


def forking_sync(ctx: SyncContext, how: str) -> list[object]:
    pid = os.fork()
    if pid == 0:
        return [leave(how)]
    return ["parent", wait_for_end(pid)]


lw.handler("fork_async", max_retries=0)(forking)
lw.handler("fork_thread", max_retries=0)(forking_sync)
lw.handler("fork_process", max_retries=0, isolation="process")(forking_sync)
lw.handler("fork_async_process", max_retries=0, isolation="process")(forking)


@lw.handler("fork_task", max_retries=0)
async def fork_task(ctx: Context) -> list[object]:
    """Forks in a task of the handler's, which goes on in the forked child too."""

    async def inner() -> int:
        pid = os.fork()
        await asyncio.sleep(0.01)
        return pid

    pid = await asyncio.create_task(inner())
    return ["parent", await asyncio.to_thread(wait_for_end, pid)]


@lw.handler("terminate_fork", max_retries=0)
async def terminate_fork(ctx: Context) -> int:
    pid = fork_sleeper()
    os.kill(pid, signal.SIGTERM)
    return await asyncio.to_thread(wait_for_end, pid)


@lw.handler("descriptors", max_retries=0)
async def descriptors(ctx: Context) -> list[str]:
    """The sockets and pipes that a forked child holds."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        with os.fdopen(write, "w") as out:
            for fd in os.listdir("/proc/self/fd"):
                with contextlib.suppress(OSError):
                    out.write(f"{fd} {os.readlink(f'/proc/self/fd/{fd}')}\n")
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as stream:
        found = stream.read().splitlines()
    wait_for_end(pid)
    return found


# -- signals that a handler takes away ------------------------------------------------------------


@lw.handler("ignore_signal", retry=SOON)
async def ignore_signal(ctx: Context, number: int) -> None:
    signal.signal(number, signal.SIG_IGN)
    await ctx.save([os.getpid()])
    await asyncio.Event().wait()


@lw.handler("isolated_pid", isolation="process")
def isolated_pid(ctx: SyncContext) -> int:
    return os.getpid()


@lw.handler("talkative", isolation="process", max_retries=0)
def talkative(ctx: SyncContext, lines: int, then: str) -> None:
    print("password=hunter2secret")
    for i in range(lines):
        print(f"line {i}")
    print("x" * 20_000)
    sys.stderr.write("no newline at the end")
    if then == "crash":
        sys.stdout.flush()
        ctypes.string_at(0)


@lw.handler("isolated_exit", isolation="process", max_retries=0)
def isolated_exit(ctx: SyncContext) -> None:
    os._exit(9)


@lw.handler("block", retry=SOON)
async def block(ctx: Context) -> None:
    await ctx.save([os.getpid()])
    time.sleep(120)  # noqa: ASYNC251 -- that is the point


@lw.handler("nap_in_executor", retry=SOON)
async def nap_in_executor(ctx: Context) -> None:
    """A thread of asyncio's, which a normal exit of the interpreter joins."""
    await ctx.save([os.getpid()])
    await asyncio.to_thread(time.sleep, 120)


@lw.on_stop
async def hang_if_asked(resources: object) -> None:
    if os.environ.get("FORK_APP_HANG_ON_STOP"):
        await asyncio.Event().wait()
