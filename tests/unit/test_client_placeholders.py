"""Placeholders of each library are equivalent to ours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sqlalchemy.dialects import postgresql

import laneway.store
from laneway.store.caller_connection import borrow, clause, numbered
from laneway.store.statement import sql

ROOT = Path(laneway.store.__file__).parent / "sql"
FILES = sorted(str(path.relative_to(ROOT))[:-4] for path in ROOT.rglob("*.sql"))


@pytest.mark.parametrize("name", FILES)
def test_every_statement_keeps_its_parameters_in_every_dialect(name: str) -> None:
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", sql(name))))
    text, order = numbered(name)
    assert list(order) == names
    assert {int(n) for n in re.findall(r"\$(\d+)", text)} == set(range(1, len(names) + 1))
    assert "%(" not in text
    made = clause(name)
    for style in ("pyformat", "named", "numeric_dollar"):
        dialect = postgresql.dialect(paramstyle=style)  # type: ignore[no-untyped-call]
        compiled = made.compile(dialect=dialect)
        assert set(compiled.params) == set(names)
    plain = str(made).replace("\\:", ":")
    shape = re.sub(r"%\((\w+)\)s", r"(:\1)", sql(name)).replace("%%", "%")
    assert plain == shape


def test_jsonb_travels_as_text_over_asyncpg() -> None:
    text, _ = numbered("jobs/submit_job")
    assert "::text::jsonb" in text
    assert not re.search(r"\$\d+::jsonb", text)


def test_classes_are_distinguished_by_library_and_name() -> None:
    class Connection:
        """A class of another library."""

    with pytest.raises(TypeError, match="Connection; accepted"):
        borrow(Connection())
    Connection.__module__ = "asyncpg.connection"
    assert borrow(Connection()).is_async
