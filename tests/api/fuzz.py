"""Requests generated from OpenAPI, and every response checked against it.

`make fuzz` sends a thousand and more; a test sends a few at every route. Both begin the same way
every time, so that what was found once is found again.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import psycopg
import schemathesis
from anyio.from_thread import BlockingPortal, start_blocking_portal
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from laneway.api.app import make_app
from laneway.api.routes.description import describe
from laneway.config.settings import Settings
from laneway.embedded.postgres import EmbeddedPostgres
from laneway.store.database import Database
from laneway.store.migrate import migrate
from tests.api.conftest import People, Principal
from tests.support.job_factory import JobFactory

FIGURES: Final = Path(__file__).resolve().parents[2] / "bench" / "latest" / "fuzz.json"
# Every text is a valid path here: the search for an invalid one would take 459 attempts.
ANY_PATH: Final = {"/ui/{path}"}
CHECKS: Final[list[Any]] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@dataclass
class Findings:
    """The number of requests, and the violations in their responses."""

    statuses: Counter[int] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    @property
    def cases(self) -> int:
        return self.statuses.total()

    @property
    def server_errors(self) -> int:
        return sum(count for status, count in self.statuses.items() if status >= 500)


class Bridge:
    """The application in a separate event loop."""

    def __init__(self, app: FastAPI, portal: BlockingPortal) -> None:
        self._app = app
        self._portal = portal

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body, is_more = b"", True
        while is_more:
            message = await receive()
            body += message.get("body", b"")
            is_more = message.get("more_body", False)
        for message in await asyncio.to_thread(self._portal.call, self._answer, scope, body):
            await send(message)

    async def _answer(self, scope: Any, body: bytes) -> list[Any]:
        sent: list[Any] = []

        has_all = False

        async def receive() -> Any:
            nonlocal has_all
            if has_all:
                # A stream without an end is not read to its end.
                await asyncio.sleep(0.02)
                return {"type": "http.disconnect"}
            has_all = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await self._app(scope, receive, send)
        return sent


@contextmanager
def bridged(dsn: str) -> Iterator[tuple[Bridge, dict[str, Any]]]:
    """The application on a database, with its description."""
    with start_blocking_portal() as portal:
        chosen = Settings.load(database_url=dsn, pool_size=3)
        database = Database(dsn, chosen, role="tests fuzz")
        app = make_app(chosen, database)
        try:
            yield Bridge(app, portal), describe(app)
        finally:
            portal.call(app.state.close)
            portal.call(database.close)


def furnish(conn: psycopg.Connection[Any]) -> tuple[Principal, dict[str, list[UUID]]]:
    """A principal with every permission, and the ids of jobs in every state and of a worker."""
    factory = JobFactory(conn)
    ended = [factory.completed(), factory.failed(), factory.running().job_id]
    waiting = [factory.submit("greet", tags=("a",), unique_key="k"), factory.submit("ingestion")]
    known = {"job_id": [*ended, *waiting], "worker_id": [factory.register()]}
    return People(conn).new("fuzz", "platform_admin"), known


def fuzz(dsn: str, per_route: int) -> Findings:
    """Send this many requests to every route, half of them intentionally invalid."""
    findings = Findings()
    with psycopg.connect(dsn, autocommit=True, application_name="tests") as conn:
        who, ids = furnish(conn)
        with bridged(dsn) as (app, description):
            schema = schemathesis.openapi.from_dict(description)
            schema.app = app
            # Sometimes an unknown id.
            known = {name: cycle([*some, None]) for name, some in ids.items()}
            for operation in (found.ok() for found in schema.get_all_operations()):  # type: ignore[union-attr]
                for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                    if mode is GenerationMode.NEGATIVE and operation.path in ANY_PATH:
                        continue
                    send = _sender(findings, who, known)
                    strategy = operation.as_strategy(generation_mode=mode)
                    # A route without parameters has no invalid request.
                    with suppress(Unsatisfiable):
                        _run(send, strategy, max(1, per_route // 2))
    return findings


def _run(send: Callable[[Any], None], strategy: Any, count: int) -> None:
    checked = settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )(given(case=strategy)(send))
    checked()


def _sender(
    findings: Findings, who: Principal, known: Mapping[str, Iterator[UUID | None]]
) -> Callable[[Any], None]:
    def send(case: Any) -> None:
        parameters = case.path_parameters or {}
        for name in parameters.keys() & known.keys():
            if (one := next(known[name])) is not None:
                parameters[name] = str(one)
        response = case.call(headers=who.headers)
        findings.statuses[response.status_code] += 1
        try:
            case.validate_response(response, checks=CHECKS)
        except (Failure, FailureGroup) as failure:
            failures: Any = getattr(failure, "exceptions", (failure,))
            name = f"{case.method} {case.operation.path}"
            findings.problems += [
                f"{name}: {response.status_code}: {one.title}: {one.message}" for one in failures
            ]

    return send


def main() -> int:
    """`make fuzz`: at least a thousand requests; the figures go to bench/latest/fuzz.json."""
    with tempfile.TemporaryDirectory(prefix="lw-fuzz-") as home:
        Path(home).chmod(0o711)
        with EmbeddedPostgres(Path(home) / "pg", settings={"fsync": "off"}) as server:
            migrate(server.dsn)
            findings = fuzz(server.dsn, int(sys.argv[1]) if len(sys.argv) > 1 else 24)
    figures = {"fuzz_cases": findings.cases, "fuzz_5xx": findings.server_errors}
    FIGURES.parent.mkdir(exist_ok=True)
    FIGURES.write_text(json.dumps(figures) + "\n")
    for problem in dict.fromkeys(findings.problems):
        print(problem)
    print(dict(sorted(findings.statuses.items())))
    print(json.dumps(figures))
    return 1 if findings.problems or findings.server_errors or findings.cases < 1000 else 0


if __name__ == "__main__":
    sys.exit(main())
