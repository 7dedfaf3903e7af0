"""Every mutant still fits the function that it changes; a self-test would take long to notice."""

from __future__ import annotations

import psycopg
import pytest

from tests.crash.mutants import MUTANTS, Mutant
from tests.crash.rows import ROWS


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_fits_function_it_changes(mutant: Mutant, dsn: str) -> None:
    assert mutant.row in ROWS
    with psycopg.connect(dsn) as conn:
        mutant.apply(conn)
