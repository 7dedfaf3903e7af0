"""The architecture page names the files, tables and packages that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import psycopg
import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "laneway"
PAGE = (ROOT / "docs" / "why" / "architecture.md").read_text("utf-8")


def section(title: str) -> str:
    """The text below a heading, up to the next one."""
    found = re.search(rf"^##+ {title}\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return found[1]


@pytest.mark.parametrize("name", re.findall(r"`([a-z_/]+\.(?:py|sql))`", PAGE))
def test_every_file_named_exists(name: str) -> None:
    assert (SOURCE / name).is_file()


def test_tables_are_those_of_the_schema(dsn: str) -> None:
    rows = [line.split("|")[1] for line in section("The tables").splitlines() if "|" in line]
    named = [name for row in rows for name in re.findall(r"`([a-z_]+)`", row)]
    with psycopg.connect(dsn, application_name="tests") as conn:
        tables = conn.execute("select tablename::text from pg_tables where schemaname = 'laneway'")
        assert sorted(named) == sorted(name for (name,) in tables)


def test_locks_are_taken_in_the_order_of_the_page() -> None:
    """The page has the order of the claim, which takes all of them."""
    listed = re.findall(r"^\d\. .*", section("Lock order"), re.MULTILINE)
    claim = (SOURCE / "store" / "definitions" / "claim.sql").read_text("utf-8")
    found = re.search(r"^-- Locks in this order, as everywhere: (.*)\.$", claim, re.MULTILINE)
    assert found is not None
    order = [step.split()[0].rstrip("s") for step in found[1].split(", ")]
    assert len(listed) == 1 + len(order)
    for step, line in zip(order, listed[1:], strict=True):
        assert step in line


def test_packages_stand_in_the_order_of_the_import_contract() -> None:
    drawn = section("The packages").split("```")[1].removeprefix("text\n")
    lines = [re.findall(r"[a-z]+", line[:32]) for line in drawn.splitlines()]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    layers = [re.findall(r"[a-z]+", layer) for layer in contracts["contracts"][0]["layers"]]
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    rooms = [sorted(packages.intersection(layer)) for layer in layers]
    assert [sorted(line) for line in lines if line] == [room for room in rooms if room]
