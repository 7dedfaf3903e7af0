"""No generated request gets a response that OpenAPI does not document."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI

from laneway.api.routes.description import describe

# `tests.api.fuzz` is imported by the tests: schemathesis takes a second, in every test process.


def test_every_answer_to_a_made_up_request_is_as_described(dsn: str) -> None:
    from tests.api.fuzz import fuzz

    findings = fuzz(dsn, per_route=2)
    assert findings.problems == []
    assert findings.server_errors == 0
    assert findings.cases >= 100
    assert {200, 404, 422} <= findings.statuses.keys()


def test_undocumented_response_is_detected(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.api import fuzz as fuzzing

    def silent(app: FastAPI) -> dict[str, Any]:
        document = describe(app)
        me = document["paths"]["/me"]
        del me["get"]["responses"]["200"]
        return {**document, "paths": {"/me": me}}

    monkeypatch.setattr(fuzzing, "describe", silent)
    findings = fuzzing.fuzz(dsn, per_route=2)
    assert {problem.partition(":")[0] for problem in findings.problems} == {"GET /me"}
