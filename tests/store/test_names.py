"""Names of job types follow one rule everywhere, also in SQL; rows that break it survive."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from laneway.domain.lane import check_job_type
from laneway.errors import InvalidInput

BAD = {
    "blank": " ",
    "space first": " a",
    "space last": "a ",
    "no-break space": "a\u00a0b",
    "ideographic space": "\u3000",
    "bidi": "a\u202eb",
    "isolate": "a\u2066b",
    "zero width": "a\u200bb",
    "tag": "a\U000e0041",
    "private use": "\ue000",
    "line separator": "a\u2028b",
    "control": "a\x07b",
    "analysis": "\x01a",
    "empty": "",
    "too long": "a" * 129,
}
GOOD = (
    "plain",
    "a b",
    "größe:1/2",
    "作業",
    "emoji 👩\u200d💻".replace("\u200d", ""),
    "a" * 128,
)
DOORS = {
    "submit": "select laneway.submit(%(name)s)",
    "lane": "insert into laneway.worker_lanes (name, job_types) values ('x', array[%(name)s])",
    "lane change": (
        "update laneway.worker_lanes set job_types = job_types || %(name)s::text"
        " where name = 'system'"
    ),
    "type": "insert into laneway.job_types (name) values (%(name)s)",
    "schedule": (
        "insert into laneway.schedules (name, job_type, cron) values ('x', %(name)s, '@daily')"
    ),
}


@pytest.fixture
def conn(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as conn:
        yield conn


@pytest.mark.parametrize("door", DOORS)
def test_sql_refuses_job_types_that_http_refuses(conn: psycopg.Connection[Any], door: str) -> None:
    for name in BAD.values():
        with pytest.raises(InvalidInput):
            check_job_type(name)
        with pytest.raises(psycopg.Error) as refused:
            conn.execute(DOORS[door].encode(), {"name": name})
        assert (refused.value.sqlstate, str(refused.value)[:9]) == ("LW001", "job_type:"), name
    for name in GOOD:
        check_job_type(name)
        with conn.transaction(force_rollback=True):
            conn.execute(DOORS[door].encode(), {"name": name})


def test_every_character_is_judged_alike_in_python_and_sql(
    conn: psycopg.Connection[Any],
) -> None:
    """Submit, the triggers and Python have the same list."""
    (body,) = conn.execute(
        "select string_agg(prosrc, '' order by proname desc) from pg_proc"
        " where pronamespace = 'laneway'::regnamespace"
        " and proname in ('submit_problem', 'check_job_types')"
    ).fetchone() or ("",)
    lists = [part.split("]')")[0].replace("\n", "") for part in body.split("('[")[1:]]
    joined = {"".join(part.split("'")[0::2]).replace(" ", "") for part in lists}
    assert (len(lists), len(joined)) == (2, 1)
    found = conn.execute(
        "select n from generate_series(1, 1114111) n where n not between 55296 and 57343"
        ' and chr(n) collate "C" ~ %s',
        [f"[{joined.pop()}]"],
    ).fetchall()
    refused = {row[0] for row in found}
    for number in range(1, sys.maxunicode + 1):
        if 0xD800 <= number <= 0xDFFF:
            continue
        character = chr(number)
        try:
            check_job_type(f"a{character}b")
        except InvalidInput:
            assert number in refused, hex(number)
        else:
            assert number not in refused, hex(number)
            assert character.isprintable() or unicodedata.category(character) == "Cn"


def test_rows_with_earlier_names_can_still_be_changed(conn: psycopg.Connection[Any]) -> None:
    conn.execute("set session_replication_role = replica")
    conn.execute("insert into laneway.job_types (name) values (E'a\\u202eb')")
    conn.execute(
        "insert into laneway.worker_lanes (name, job_types) values ('x', array[E'a\\u202eb'])"
    )
    conn.execute(
        "insert into laneway.schedules (name, job_type, cron) values ('x', E'a\\u202eb', '@daily')"
    )
    conn.execute("set session_replication_role = origin")
    conn.execute(
        "update laneway.worker_lanes set job_types = job_types || 'ok'::text where name = 'x'"
    )
    conn.execute("update laneway.worker_lanes set max_slots = 3 where name = 'x'")
    conn.execute("update laneway.schedules set job_type = job_type, enabled = false")
    conn.execute(
        "insert into laneway.job_types (name) values (E'a\\u202eb')"
        " on conflict (name) do update set priority = 1"
    )


@pytest.mark.parametrize(
    "given",
    [
        "tags => array_fill('a'::text, array[65])",
        "tags => array['a', '']",
        "tags => array['a', null]",
        "tags => array[repeat('a', 129)]",
        "created_by => ''",
        "created_by => repeat('a', 257)",
        "traceparent => repeat('a', 257)",
    ],
)
def test_sql_refuses_fields_that_http_refuses(conn: psycopg.Connection[Any], given: str) -> None:
    with pytest.raises(psycopg.Error) as refused:
        conn.execute(f"select laneway.submit('a', {given})".encode())
    assert (refused.value.sqlstate, str(refused.value).split(":")[0]) == ("LW001", given.split()[0])
