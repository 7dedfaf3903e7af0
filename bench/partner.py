"""A module of the benchmarks in another process, which exchanges lines with this one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Self

from bench.workers import ROOT


class Partner:
    """The process; it is killed when the block ends."""

    def __init__(
        self, module: str, *arguments: object, variables: Mapping[str, str] | None = None
    ) -> None:
        self._name = module
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *map(str, arguments)],
            cwd=ROOT,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def expect(self, line: str) -> None:
        """Wait until it prints this line next."""
        assert self._process.stdout is not None
        found = self._process.stdout.readline()
        assert found == f"{line}\n", f"{self._name} printed {found!r}, not {line!r}"

    def send(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def result(self, within_s: float) -> Any:
        """End its input and wait for its end; the JSON that it prints last."""
        output, _ = self._process.communicate(timeout=within_s)
        code = self._process.returncode
        assert code == 0, f"{self._name} ended with {code}"
        return json.loads(output)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.communicate()
