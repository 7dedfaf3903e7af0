"""Handlers for the child processes of test_process_pool.py; several of them are hostile."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from laneway.domain.handler_signals import Cancel, Retry, Snooze
from laneway.engine.child.wire import HEAD
from laneway.engine.registry import Registry, make_handler
from laneway.engine.run.context import Context, SyncContext

app = SimpleNamespace(registry=Registry())
broken = SimpleNamespace(registry=Registry())


def handler(
    job_type: str, registry: Registry = app.registry, **options: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        registry.add(make_handler(job_type, fn, isolation="process", **options))
        return fn

    return register


def load(resources: SimpleNamespace) -> None:
    resources.loaded = [os.getpid()]


async def load_async(resources: SimpleNamespace) -> None:
    resources.loop = asyncio.get_running_loop()


def free(resources: SimpleNamespace) -> None:
    path = os.environ.get("POOL_TEST_FREED")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(resources.loaded) + "\n")


app.registry.on_start += [load, load_async]
app.registry.on_stop.append(free)


@handler("echo")
def echo(ctx: SyncContext, value: Any = None) -> Any:
    return {"value": value, "pid": os.getpid(), "attempt": ctx.attempt, "id": str(ctx.job_id)}


@handler("limited_echo", memory_mb=256)
def limited_echo(ctx: SyncContext) -> int:
    return os.getpid()


def _babble() -> None:
    """Writes bytes to the pool that are not a message."""
    os.write(int(sys.orig_argv[-1]), HEAD.pack(3) + b"{}}")


@handler("babble")
def babble(ctx: SyncContext) -> None:
    _babble()
    threading.Event().wait()


@handler("babble_at_signal")
def babble_at_signal(ctx: SyncContext, path: str) -> int:
    def speak(*args: object) -> None:
        _babble()
        open(path, "x").close()

    signal.signal(signal.SIGUSR1, speak)
    return os.getpid()


@handler("fail")
def fail(ctx: SyncContext, how: str) -> None:
    match how:
        case "error":
            raise ValueError("no such page")
        case "mute":
            raise Mute
        case "retry":
            raise Retry("busy", after=7)
        case "snooze":
            raise Snooze(9)
        case "cancel":
            raise Cancel("nothing to do")
        case "exit":
            sys.exit(4)


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@handler("crash")
def crash(ctx: SyncContext, how: str) -> None:
    ctx.log("about to crash")
    match how:
        case "exit":
            os._exit(3)
        case "segv":
            ctypes.string_at(0)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hang_up":
            os.closerange(3, 64)


@handler("signals")
def signals(ctx: SyncContext) -> str:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(os.getpid(), number)
    child = subprocess.Popen(["sleep", "60"])
    child.terminate()
    return signal.Signals(-child.wait()).name


@handler("hog", memory_mb=64)
def hog(ctx: SyncContext, mb: int) -> int:
    return len(bytearray(mb << 20))


@handler("busy")
def busy(ctx: SyncContext) -> None:
    ctx.log("busy")
    # A C function that keeps the GIL: no thread of this process runs any more.
    ctypes.PyDLL(None).pause()


@handler("forking")
def forking(ctx: SyncContext) -> None:
    program = subprocess.Popen(["sleep", "600"])
    ctx.log(str(program.pid))
    program.wait()


@handler("patient")
def patient(ctx: SyncContext) -> None:
    ctx.log("waiting")
    while True:
        ctx.check()
        threading.Event().wait(0.01)


@handler("tracking")
def tracking(ctx: SyncContext) -> None:
    def forever() -> Iterator[int]:
        number = 0
        while True:
            threading.Event().wait(0.01)
            yield number
            number += 1

    ctx.log("tracking")
    for _ in ctx.track(forever()):
        pass


@handler("stubborn_finish")
def stubborn_finish(ctx: SyncContext) -> str:
    ctx.log("waiting")
    while not ctx.cancelled:
        threading.Event().wait(0.01)
    return "done all the same"


@handler("reporting")
def reporting(ctx: SyncContext) -> Any:
    before = ctx.checkpoint
    ctx.progress(1, 4, "half", stage="one")
    ctx.log.warning("a \ud800 line")
    ctx.save({"page": 2})
    ctx.log("saved")
    ctx.progress(3)
    return [before, ctx.checkpoint]


@handler("chatter")
def chatter(ctx: SyncContext, times: int) -> None:
    for number in range(times):
        ctx.progress(number + 1, times)


@handler("resume")
def resume(ctx: SyncContext) -> list[int]:
    return list(ctx.track(range(5), durable=True))


@handler("async_echo")
async def async_echo(ctx: Context, value: Any = None) -> Any:
    await ctx.progress(1, 1)
    await ctx.save({"seen": value})
    is_same = ctx.resources.loop is asyncio.get_running_loop()
    left_over = asyncio.create_task(asyncio.Event().wait())
    ctx.resources.tasks = [left_over, *getattr(ctx.resources, "tasks", [])]
    done = [task.done() for task in ctx.resources.tasks]
    return {"value": value, "same_loop": is_same, "pid": os.getpid(), "tasks_done": done}


@handler("async_patient")
async def async_patient(ctx: Context) -> None:
    ctx.log("waiting")
    try:
        await asyncio.Event().wait()
    finally:
        ctx.log("tidied up")


@handler("async_exit")
async def async_exit(ctx: Context) -> None:
    sys.exit(5)


@handler("resources")
def resources(ctx: SyncContext) -> list[int]:
    return [os.getpid(), *ctx.resources.loaded]


@handler("environment")
def environment(ctx: SyncContext) -> Any:
    return {
        "cwd": os.getcwd(),
        "path": sys.path,
        "python_path": os.environ.get("PYTHONPATH"),
        "files": [_link(name) for name in os.listdir("/proc/self/fd")],
        "is_leader": os.getsid(0) == os.getpid(),
    }


def _link(name: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{name}")
    except FileNotFoundError:
        return ""


@handler("talking")
def talking(ctx: SyncContext) -> None:
    print("written to stdout")
    print("written to stderr", file=sys.stderr)


def no_resources(resources: SimpleNamespace) -> None:
    raise ConnectionError("the model is not there")


broken.registry.on_start.append(no_resources)


@handler("broken_start", registry=broken.registry)
def broken_start(ctx: SyncContext) -> None:
    pass


def hidden() -> Registry:
    """A registry that no child can find."""
    registry = Registry()

    def fn(ctx: SyncContext) -> None:
        pass

    registry.add(make_handler("hidden", fn, isolation="process"))
    return registry
