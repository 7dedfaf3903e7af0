"""The TypeScript client, called from Python: one process, one JSON line per call and result."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.conformance.processes import TYPESCRIPT, node

DRIVER = TYPESCRIPT.with_name("client_driver.js")


class ClientError(Exception):
    """An error that the client threw; `details` has its name, message and code."""

    def __init__(self, details: dict[str, Any]) -> None:
        super().__init__(f"{details['name']}: {details['message']}")
        self.details = details


class Driver:
    """Calls methods of the client."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def call(self, name: str, *args: object) -> Any:
        """The result of a call, or its error as ClientError."""
        self.start(name, *args)
        return self.result()

    def start(self, name: str, *args: object) -> None:
        """Start a call; `result` waits for it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"call": name, "args": args}) + "\n")
        self._process.stdin.flush()

    def result(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the client's process has ended"
        answer = json.loads(line)
        if "error" in answer:
            raise ClientError(answer["error"])
        return answer["value"]


@contextmanager
def typescript_client(url: str, token: str) -> Iterator[Driver]:
    """A client in a separate process, which ends with the block."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("LANEWAY_")}
    process = subprocess.Popen(
        [node(), str(DRIVER)],
        env={**kept, "LANEWAY_SERVER": url, "LANEWAY_TOKEN": token},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    with process:
        try:
            yield Driver(process)
        finally:
            process.kill()
