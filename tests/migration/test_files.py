"""Each migration is sent as one message, which Laneway splits and assembles."""

from __future__ import annotations

import re

import pytest

from laneway.store.migrate import Migration, definitions, migrations
from laneway.store.migration_files import statements, transaction


@pytest.mark.parametrize("migration", [*migrations(), definitions()], ids=lambda m: m.name)
def test_statements_are_the_whole_text_of_a_migration(migration: Migration) -> None:
    def bare(text: str) -> str:
        return re.sub(r"--[^\n]*|\s", "", text)

    assert bare("".join(statements(migration.sql))) == bare(migration.sql)


@pytest.mark.parametrize("migration", [*migrations(), definitions()], ids=lambda m: m.name)
def test_migration_neither_ends_its_transaction_nor_needs_to_run_outside(
    migration: Migration,
) -> None:
    for statement in statements(migration.sql):
        first = re.sub(r"--[^\n]*", "", statement).split()[0].lower().rstrip(";")
        assert first not in {"begin", "commit", "end", "rollback", "savepoint", "start", "vacuum"}
        assert not re.search(r"\bindex\s+concurrently\b", statement, re.IGNORECASE)


def test_migration_drops_no_function() -> None:
    """Functions of earlier versions call each other until the definitions are replaced."""
    drops = re.compile(r"^\s*drop\s+function\b", re.IGNORECASE | re.MULTILINE)
    # It drops trigger functions together with their triggers.
    assert [m.number for m in migrations() if drops.search(m.sql)] == [19]


@pytest.mark.parametrize(
    "text, found",
    [
        ("select 1; select 2", ["select 1;", "select 2;"]),
        ("-- a; b\nselect 1;\n-- the end;\n", ["-- a; b\nselect 1;"]),
        ("select ';', \";\", e'\\';' ;select 2;", ["select ';', \";\", e'\\';' ;", "select 2;"]),
        ("do $$ a; b $$; do $x$ $$;$$ $x$;", ["do $$ a; b $$;", "do $x$ $$;$$ $x$;"]),
        ("/* ; */ select 'it''s;';", ["/* ; */ select 'it''s;';"]),
        ("-- nothing to do;\n", []),
    ],
)
def test_text_is_split_where_a_statement_ends(text: str, found: list[str]) -> None:
    assert list(statements(text)) == found


def test_transaction_commits_once_and_last() -> None:
    text = transaction(definitions())
    assert text.startswith("begin isolation level read committed;")
    assert text.endswith("commit;")
    assert len(re.findall(r"^(?:begin\b.*|commit);$", text, re.MULTILINE)) == 2
