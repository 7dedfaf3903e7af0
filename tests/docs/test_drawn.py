"""Generated documents are up to date, and written lists are complete."""

from __future__ import annotations

import re

import pytest

from laneway import errors
from scripts.write_docs import DOCS, DRAWN


@pytest.mark.parametrize("name", DRAWN)
def test_generated_document_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text("utf-8") == DRAWN[name](), "run `make docs`"


def test_reference_lists_every_error_with_its_code() -> None:
    text = (DOCS / "reference/python.md").read_text("utf-8")
    listed = dict(re.findall(r"^\| `(\w+)` \| `(\w+)` \|", text, re.MULTILINE))
    known = {
        name: error.code
        for name, error in vars(errors).items()
        if isinstance(error, type) and issubclass(error, errors.LanewayError)
    }
    del known["LanewayError"]
    assert known.items() <= listed.items()
