"""Documents drawn from the code are as the code draws them now."""

from __future__ import annotations

import pytest

from scripts.write_docs import DOCS, DRAWN


@pytest.mark.parametrize("name", DRAWN)
def test_document_is_as_the_code_draws_it(name: str) -> None:
    assert (DOCS / name).read_text("utf-8") == DRAWN[name](), "run `make docs`"
