"""Callers cannot grant permissions that they do not hold, whatever the grants."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from laneway.domain.permissions import PERMISSIONS, Access, Grant, excess

WORKSPACES = ("ours", "theirs")
LANES = ("default", "system")
NAMES = ("ann", "bob")

names = st.sampled_from(NAMES)
permissions = st.frozensets(st.sampled_from(PERMISSIONS[:3]), min_size=1)
lanes = st.none() | st.frozensets(st.sampled_from(LANES), min_size=1)
grants = st.one_of(
    st.builds(Grant, permissions, st.just("all"), st.none(), lanes),
    st.builds(Grant, permissions, st.just("workspace"), st.sampled_from(WORKSPACES), lanes),
    st.builds(Grant, permissions, st.just("own"), st.none() | st.sampled_from(WORKSPACES), lanes),
)


def access(name: str, held: list[Grant], narrowed: frozenset[str] | None = None) -> Access:
    return Access(UUID(int=1), name, "person", tuple(held), token_permissions=narrowed)


@given(names, st.lists(grants, max_size=3), names, st.lists(grants, max_size=3))
def test_without_excess_the_taker_covers_nothing_that_the_giver_does_not(
    giver: str, own: list[Grant], taker: str, given: list[Grant]
) -> None:
    wide, narrow = access(giver, own), access(taker, given)
    if excess(wide, narrow) is not None:
        return
    for permission in PERMISSIONS:
        for owner in (*NAMES, None):
            for workspace in (*WORKSPACES, None):
                for lane in (*LANES, None):
                    at = {"owner": owner, "workspace": workspace, "lane": lane}
                    if narrow.reach(permission).covers(**at):
                        assert wide.reach(permission).covers(**at)


@given(names, st.lists(grants, max_size=3), st.none() | permissions)
def test_callers_may_delegate_their_own_grants(
    name: str, own: list[Grant], narrowed: frozenset[str] | None
) -> None:
    assert excess(access(name, own), access(name, own, narrowed)) is None


def test_narrow_token_gives_no_more_than_it_has() -> None:
    everything = [Grant(frozenset(PERMISSIONS), "all")]
    narrow = access("ann", everything, frozenset({"access:manage"}))
    assert excess(narrow, access("ann", everything)) == "jobs:submit"
    assert excess(access("ann", []), access("ann", [])) is None
