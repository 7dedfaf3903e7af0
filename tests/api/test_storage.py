"""The database page: versions and sizes, and no credentials."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from laneway.store.migrate import migrations
from tests.api.conftest import Ask, People
from tests.support.job_factory import JobFactory

PAGE = "/admin/database"


async def test_storage_shows_versions_sizes_and_connection(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    factory.submit()
    answer = await ask(people.new("vera", "viewer"), "GET", PAGE)
    assert answer.status_code == 200, answer.text
    seen = answer.json()
    assert seen["server_version"].split(".")[0].isdigit()
    assert seen["schema_version"] == migrations()[-1].name
    assert (seen["pending"], seen["unknown"], seen["changed"]) == ([], [], [])
    sizes = {each["name"]: each["bytes"] for each in seen["tables"]}
    assert seen["bytes"] > sum(sizes.values()) > sizes["jobs"] > 0
    assert list(sizes.values()) == sorted(sizes.values(), reverse=True)
    assert (seen["connection"], seen["listens"], seen["listener"]) == ("direct", True, "off")


async def test_storage_check_reports_missing_and_newer_migrations(
    ask: Ask, people: People, conn: psycopg.Connection[Any]
) -> None:
    vera = people.new("vera", "viewer")
    newest = migrations()[-1]
    conn.execute("update laneway.migrations set number = 9001, name = '9001_of_tomorrow'"
                 " where number = %s", [newest.number])  # fmt: skip
    seen = (await ask(vera, "GET", PAGE)).json()
    assert (seen["pending"], seen["unknown"]) == ([newest.name], ["9001_of_tomorrow"])
    assert seen["schema_version"] == migrations()[-2].name


async def test_transaction_that_pins_dead_rows_is_reported(
    ask: Ask, people: People, factory: JobFactory, dsn: str
) -> None:
    vera = people.new("vera", "viewer")
    with psycopg.connect(dsn, application_name="forgotten") as other:
        other.execute("set transaction isolation level repeatable read")
        other.execute("select 1 from laneway.jobs")
        seen = (await ask(vera, "GET", PAGE)).json()
    assert seen["oldest_transaction"]["application"] == "forgotten"


async def test_storage_opens_no_extra_connection(
    ask: Ask, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    vera = people.new("vera", "viewer")

    def refused(*given: object, **more: object) -> None:
        raise AssertionError("a separate connection")

    monkeypatch.setattr(psycopg, "connect", refused)
    assert (await ask(vera, "GET", PAGE)).status_code == 200


async def test_no_part_of_dsn_is_revealed(ask: Ask, people: People, dsn: str) -> None:
    text = (await ask(people.new("vera", "viewer"), "GET", PAGE)).text
    info = psycopg.conninfo.conninfo_to_dict(dsn)
    for name in ("host", "password", "dbname"):
        assert not info.get(name) or str(info[name]) not in text, name


async def test_storage_requires_access_to_all_lanes(ask: Ask, people: People) -> None:
    larry = people.new("larry", "viewer", lanes=["system"])
    assert (await ask(larry, "GET", PAGE)).status_code == 403
