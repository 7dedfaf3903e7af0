"""Whether a worker process lives, and whether it would run a job now: for orchestrators."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Protocol

from laneway.config.settings import Settings

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

# A loop that has not turned for so long claims nothing.
BLOCKED_S: Final = 5.0
# Whoever asks more often gets the last answer: it may cost a connection.
FRESH_S: Final = 1.0


class Watched(Protocol):
    """A worker that can say what is wrong, from any thread."""

    def trouble(self) -> str | None:
        """Why it would run no job now; None: it would."""
        ...


class WorkerHealth:
    """Answers from other threads than the worker's loop: a handler that blocks it cannot lie."""

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
        """The worker's event loop turns."""
        self._turned = time.monotonic()

    def route(self, metrics: WSGIApplication) -> WSGIApplication:
        """Metrics at /metrics, health at /healthz and /readyz, nothing elsewhere."""

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
        """Why the process should be restarted."""
        silent = time.monotonic() - self._turned
        if silent > self._loop_timeout_s:
            return f"the event loop has not turned for {silent:.0f} s"
        return None

    def readiness_problem(self) -> str | None:
        """Why the process would run no job now."""
        with self._lock:
            looked, said = self._last
            if time.monotonic() - looked > FRESH_S:
                said = self._look()
                self._last = time.monotonic(), said
        return said

    def _look(self) -> str | None:
        if self._worker is None:
            return "the worker is starting"
        silent = time.monotonic() - self._turned
        if silent > BLOCKED_S:
            return f"the event loop has not turned for {silent:.0f} s"
        return self._worker.trouble()


def _answer(trouble: str | None) -> tuple[str, dict[str, str]]:
    if trouble is None:
        return "200 OK", {"status": "ok"}
    return "503 Service Unavailable", {"status": "unavailable", "reason": trouble}
