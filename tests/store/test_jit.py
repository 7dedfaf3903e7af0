"""No statement of ours is compiled just in time: compiling takes seconds, running a millisecond.

PostgreSQL compiles what it plans above `jit_above_cost`. A plan that uses a method which is `off`
costs 1e10 more up to version 17, so a function that switches one off must switch JIT off too.
"""

from __future__ import annotations

import json
import re
from typing import Any

import psycopg
import pytest

from laneway.config.settings import Settings
from laneway.store.database import connection_options
from laneway.store.statement import sql
from tests.store.test_statements import NAMES, PARAMETER
from tests.support.store_client import StoreClient

pytestmark = pytest.mark.usefixtures("new_sessions")

CHANGE = "do $$ begin execute format('alter database %I {}', current_database()); end $$"


def test_function_that_forbids_plan_methods_also_forbids_jit(db: StoreClient) -> None:
    functions = db.rows(
        "select proname::text, proconfig from pg_proc"
        " where pronamespace = 'laneway'::regnamespace and proconfig is not null"
    )
    forbidding = {
        name: config
        for name, config in functions
        if any(re.fullmatch(r"enable_\w+=off", setting) for setting in config)
    }
    assert {"claim", "settle", "heartbeat"} <= forbidding.keys()
    assert [name for name, config in forbidding.items() if "jit=off" not in config] == []


def test_our_connections_always_disable_jit(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute(CHANGE.format("set jit = on").encode())
        try:
            with psycopg.connect(dsn, **connection_options(dsn, Settings.load(), "test")) as conn:
                assert conn.execute("show jit").fetchone() == ("off",)
        finally:
            admin.execute(CHANGE.format("reset jit").encode())


def costs(plan: Any) -> float:
    """Total cost of a plan, in the planner's own units."""
    return float(plan[0]["Plan"]["Total Cost"])


@pytest.mark.parametrize("name", NAMES)
def test_statement_is_planned_below_the_cost_where_jit_begins(db: StoreClient, name: str) -> None:
    # Behind a pooler, and on a caller's connection, JIT is as the server has it.
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match[1] not in names:
            names.append(match[1])
        return f"${names.index(match[1]) + 1}"

    db.do(f"prepare checked as {PARAMETER.sub(number, sql(name)).replace('%%', '%')}")
    try:
        db.do("set plan_cache_mode = force_generic_plan")
        values = f"({', '.join(['null'] * len(names))})" if names else ""
        found = db.one(f"explain (format json) execute checked{values}")
    finally:
        db.do("reset plan_cache_mode")
        db.do("deallocate checked")
    plan = json.loads(found) if isinstance(found, str) else found
    assert costs(plan) < float(db.one("select current_setting('jit_above_cost')"))
