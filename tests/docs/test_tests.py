"""Laws about the tests: they depend on public effects only.

`ruff` (SLF001) finds private attributes in code; these tests find private names in strings.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLACES = ("tests", "bench")
FILES = sorted(path for place in PLACES for path in (ROOT / place).rglob("*.py"))
READERS = {"getattr", "hasattr", "setattr", "delattr", "setitem", "object", "attrgetter"}
NAMED_TUPLE = {"_asdict", "_fields", "_make", "_replace"}
PRIVATE = re.compile(r"(?:^|\.)_(?!_)\w+")


def named_private(tree: ast.AST) -> Iterator[str]:
    """Private names of other modules, in strings or imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("laneway"):
            yield from (one.name for one in node.names if PRIVATE.match(one.name))
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in READERS:
                texts = (one.value for one in node.args[:2] if isinstance(one, ast.Constant))
                yield from (one for one in texts if isinstance(one, str) and PRIVATE.search(one))


def test_no_test_depends_on_a_private_name() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in FILES
        for name in named_private(ast.parse(path.read_text("utf-8")))
        if name not in NAMED_TUPLE
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "getattr(worker, '_loops')",
        "monkeypatch.setattr(worker, '_loops', {})",
        "monkeypatch.setattr('laneway.api.routes.login._PATIENCE_S', 1)",
        "mock.patch.object(worker, '_loops')",
        "from laneway.store.caller_connection import _clause",
        "setattr(worker, '_Worker__loops', {})",
    ],
)
def test_private_name_in_text_is_found(line: str) -> None:
    assert list(named_private(ast.parse(line)))


def test_public_name_in_text_is_not_found() -> None:
    lines = "getattr(worker, 'loops'); setattr(x, '__doc__', 1); d.setdefault('_a', 1)"
    assert not list(named_private(ast.parse(lines)))
