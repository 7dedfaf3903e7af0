"""Generated documents are up to date, and written lists are complete."""

from __future__ import annotations

import re

import pytest

from laneway.api.http.problems import STATUS
from scripts.error_reference import JOB_ERRORS, PLAIN, known_errors
from scripts.write_docs import DOCS, DRAWN


@pytest.mark.parametrize("name", DRAWN)
def test_generated_document_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text("utf-8") == DRAWN[name](), "run `make docs`"


def test_error_reference_lists_every_error_of_jobs() -> None:
    source = DOCS.parent / "src" / "laneway"
    written = re.compile(
        r"""own_error_json\(\s*"(\w+)"|'type', '(\w+)', 'message'|"type": "(\w+)\""""
    )
    found = {
        name
        for path in [
            *source.glob("engine/**/*.py"),
            *source.glob("rpc/**/*.py"),
            *source.glob("store/definitions/*.sql"),
        ]
        for match in written.findall(path.read_text("utf-8"))
        for name in match
        if name
    }
    # A handler's Cancel ends no job as failed, and Error stands for the class of an exception.
    assert found - {"Cancel", "Error"} <= JOB_ERRORS.keys()
    assert {"Timeout", "WorkerLost", "MaxAge"} <= found


def test_every_http_code_is_in_the_error_reference() -> None:
    codes = {error.code for error in known_errors()} | PLAIN.keys()
    assert STATUS.keys() <= codes
