"""Liveness and readiness of a worker process, for orchestrators."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Protocol

from laneway.config.settings import Settings

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

# An event loop blocked for this long makes the worker unready.
BLOCKED_S: Final = 5.0
# How long an answer is reused: a new one may cost a connection.
FRESH_S: Final = 1.0


class Watched(Protocol):
    """A worker whose state can be read from any thread."""

    def problem(self) -> str | None:
        """The reason why it would not run a job now, if there is one."""
        ...


class WorkerHealth:
    """Answers health requests outside the worker's loop, so that a blocked loop is noticed."""

    def __init__(self, settings: Settings) -> None:
        self._loop_timeout_s = settings.loop_timeout
        self._worker: Watched | None = None
        self._turned = time.monotonic()
        self._lock = threading.Lock()
        self._last: tuple[float, str | None] = (0.0, None)

    def watch(self, worker: Watched) -> None:
        self._worker = worker
        self.turned()

    def turned(self) -> None:
        """Note that the worker's event loop is running."""
        self._turned = time.monotonic()

    def route(self, metrics: WSGIApplication) -> WSGIApplication:
        """Serve metrics at /metrics and health at /healthz and /readyz."""

        def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            match environ.get("PATH_INFO"):
                case "/metrics":
                    return metrics(environ, start_response)
                case "/healthz":
                    status, body = _answer(self.liveness_problem())
                case "/readyz":
                    status, body = _answer(self.readiness_problem())
                case _:
                    status, body = "404 Not Found", {"status": "not found"}
            start_response(status, [("Content-Type", "application/json")])
            return [json.dumps(body).encode() + b"\n"]

        return app

    def liveness_problem(self) -> str | None:
        """The reason why the process should be restarted, if there is one."""
        return self._blocked_for(self._loop_timeout_s)

    def readiness_problem(self) -> str | None:
        """The reason why the process would not run a job now, if there is one."""
        with self._lock:
            checked_at, problem = self._last
            if time.monotonic() - checked_at > FRESH_S:
                problem = self._check()
                self._last = time.monotonic(), problem
        return problem

    def _check(self) -> str | None:
        if self._worker is None:
            return "the worker is starting"
        return self._blocked_for(BLOCKED_S) or self._worker.problem()

    def _blocked_for(self, longest_s: float) -> str | None:
        silent_s = time.monotonic() - self._turned
        return (
            f"the event loop has been blocked for {silent_s:.0f} s"
            if silent_s > longest_s
            else None
        )


def _answer(problem: str | None) -> tuple[str, dict[str, str]]:
    if problem is None:
        return "200 OK", {"status": "ok"}
    return "503 Service Unavailable", {"status": "unavailable", "reason": problem}
