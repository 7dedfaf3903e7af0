"""The twins find what they spoil: one that no longer fits would be met only by a long self-test."""

from __future__ import annotations

import psycopg
import pytest

from tests.crash.rows import ROWS
from tests.crash.twins import TWINS, Twin


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_a_twin_fits_the_function_that_it_spoils(twin: Twin, dsn: str) -> None:
    assert twin.row in ROWS
    with psycopg.connect(dsn) as conn:
        twin.apply(conn)
