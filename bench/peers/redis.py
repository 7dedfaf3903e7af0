"""A Redis for the systems that use it."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from bench.peers.places import Counters, cpu_s
from bench.peers.system import CannotInstall, System


def redis_program() -> str:
    """The path of redis-server; raise CannotInstall without it."""
    found = shutil.which("redis-server")
    if found is None:
        raise CannotInstall("redis-server (Debian package redis-server) is not installed")
    return found


class Redis:
    """A Redis server without persistence, on a port of loopback; starts on entry."""

    def __init__(self) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="laneway-bench-redis-"))
        self.port = _free_port()
        program = redis_program()
        self.options = ["--save", "", "--appendonly", "no", "--bind", "127.0.0.1"]
        self._server = subprocess.Popen(
            [program, "--port", str(self.port), "--dir", str(self._home), *self.options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.process = psutil.Process(self._server.pid)
        deadline = time.monotonic() + 10
        while True:
            try:
                self._socket = socket.create_connection(("127.0.0.1", self.port), timeout=5)
            except ConnectionRefusedError:
                assert time.monotonic() < deadline, "redis-server does not start"
                time.sleep(0.05)
            else:
                break
        self._answers = self._socket.makefile("rb")
        self.version = self.info("redis_version")

    def ask(self, *words: str) -> str:
        """The answer to a command: a status, a number or a text."""
        self._socket.sendall((" ".join(words) + "\r\n").encode())
        line = self._answers.readline().decode().strip()
        if line.startswith("$"):
            return self._answers.read(int(line[1:]) + 2).decode().strip()
        assert not line.startswith("-"), line
        return line[1:]

    def info(self, name: str) -> str:
        found = [line for line in self.ask("INFO").splitlines() if line.startswith(f"{name}:")]
        return found[0].partition(":")[2]

    @contextlib.contextmanager
    def place(self, system: System) -> Iterator[RedisPlace]:
        self.ask("FLUSHALL")
        yield RedisPlace(self, system)

    def close(self) -> None:
        self._socket.close()
        self._server.kill()
        self._server.wait()
        shutil.rmtree(self._home, ignore_errors=True)


class RedisPlace:
    """The emptied Redis."""

    def __init__(self, redis: Redis, system: System) -> None:
        self._redis = redis
        self._keys = json.loads(system.settled)

    @property
    def variables(self) -> dict[str, str]:
        return {"REDIS_URL": f"redis://127.0.0.1:{self._redis.port}/0"}

    def is_settled(self) -> bool:
        return all(self._redis.ask(command, key) == "0" for command, key in self._keys)

    def is_at_rest(self) -> bool:
        return True

    def counters(self) -> Counters:
        return Counters(cpu_s(self._redis.process), 0)

    def clean_up(self) -> None:
        return None

    def analyze(self) -> None:
        return None

    def hold_snapshot(self) -> contextlib.AbstractContextManager[None]:
        raise NotImplementedError("Redis has no snapshots")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
