"""Generated documents are up to date."""

from __future__ import annotations

import pytest

from scripts.write_docs import DOCS, DRAWN


@pytest.mark.parametrize("name", DRAWN)
def test_generated_document_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text("utf-8") == DRAWN[name](), "run `make docs`"
