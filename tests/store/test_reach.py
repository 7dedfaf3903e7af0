"""The database and Python agree on the scope of a caller."""

from __future__ import annotations

import json
from typing import Any

import psycopg
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laneway.domain.permissions import Reach, Term

NAMES = st.sampled_from(["a", "b", "é'\"%"])
TERMS = st.builds(
    Term,
    owner=st.none() | NAMES,
    workspace=st.none() | NAMES,
    lanes=st.none() | st.frozensets(NAMES, max_size=2),
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    reach=st.builds(Reach, st.lists(TERMS, max_size=3).map(tuple)),
    owner=st.none() | NAMES,
    workspace=NAMES,
    lane=NAMES,
)
def test_job_is_within_a_reach_exactly_if_the_reach_covers_it(
    conn: psycopg.Connection[Any], reach: Reach, owner: str | None, workspace: str, lane: str
) -> None:
    found = conn.execute(
        "select laneway.is_within(%s::jsonb, %s, %s, %s)",
        [json.dumps(reach.to_list()), owner, workspace, lane],
    ).fetchone()
    assert found == (reach.covers(owner=owner, workspace=workspace, lane=lane),)
