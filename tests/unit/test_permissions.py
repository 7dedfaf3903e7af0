"""Laws of access: deny by default, grants only add, tokens only restrict."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.domain.access import (
    check_lanes,
    check_life,
    check_principal_name,
    check_role_permissions,
    check_scope,
)
from laneway.domain.permissions import (
    PERMISSIONS,
    SEEDED_ROLES,
    Access,
    Grant,
    Reach,
    Term,
    check_permissions,
)
from laneway.domain.token import PREFIXES, Purpose, digest_of, new_secret
from laneway.errors import InvalidInput

ME = UUID(int=1)
NAMES = ("me", "you", None)
SPACES = ("a", "b", None)
LANES = ("x", "y", None)

permissions = st.frozensets(st.sampled_from(PERMISSIONS))
lane_sets = st.none() | st.frozensets(st.sampled_from(["x", "y", "z"]), min_size=1)


@st.composite
def grants(draw: st.DrawFn) -> Grant:
    scope = draw(st.sampled_from(["own", "workspace", "all"]))
    spaces: dict[str, tuple[str | None, ...]] = {
        "own": (None, "a", "b"),
        "workspace": ("a", "b"),
        "all": (None,),
    }
    workspace = draw(st.sampled_from(spaces[scope]))
    return Grant(draw(permissions), scope, workspace, draw(lane_sets))  # type: ignore[arg-type]


grant_sets = st.lists(grants(), max_size=4).map(tuple)


def access(
    granted: Iterable[Grant],
    token_permissions: frozenset[str] | None = None,
    token_lanes: frozenset[str] | None = None,
) -> Access:
    return Access(ME, "me", "person", tuple(granted), token_permissions, token_lanes)


def cells(who: Access) -> set[tuple[str, object, object, object]]:
    """All allowed combinations of permission, owner, workspace and lane."""
    return {
        (permission, owner, workspace, lane)
        for permission in PERMISSIONS
        for owner in NAMES
        for workspace in SPACES
        for lane in LANES
        if who.reach(permission).covers(owner=owner, workspace=workspace, lane=lane)
    }


# -- permissions ------------------------------------------------------------------------------


def test_without_a_grant_nothing_is_allowed() -> None:
    nobody = access([])
    assert cells(nobody) == set()
    assert not any(nobody.allows(each) for each in (*PERMISSIONS, "", "jobs", "jobs:*"))


@given(grant_sets, grants())
def test_grant_only_adds(granted: tuple[Grant, ...], more: Grant) -> None:
    assert cells(access(granted)) <= cells(access([*granted, more]))


@given(grant_sets)
def test_permissions_are_union_of_grants(granted: tuple[Grant, ...]) -> None:
    apart: set[tuple[str, object, object, object]] = set()
    assert cells(access(granted)) == apart.union(*(cells(access([each])) for each in granted))


@given(grant_sets, st.none() | permissions, lane_sets)
def test_token_never_widens(
    granted: tuple[Grant, ...], narrowed: frozenset[str] | None, lanes: frozenset[str] | None
) -> None:
    whole, token = access(granted), access(granted, narrowed, lanes)
    assert cells(token) <= cells(whole)
    assert {p for p in PERMISSIONS if token.allows(p)} <= (
        set(PERMISSIONS) if narrowed is None else narrowed
    )
    if lanes is not None:
        assert {lane for *_, lane in cells(token)} <= lanes
        assert not any(token.allows_everywhere(each) for each in PERMISSIONS)


@given(grants())
def test_scope_excludes_everything_outside(granted: Grant) -> None:
    for _, owner, workspace, lane in cells(access([granted])):
        assert granted.scope != "own" or owner == "me"
        assert granted.workspace in (None, workspace)
        assert granted.lanes is None or lane in granted.lanes


@given(
    st.lists(st.builds(Term, st.sampled_from(NAMES), st.sampled_from(SPACES), lane_sets)),
    st.sampled_from(NAMES),
    st.sampled_from(SPACES),
    st.sampled_from(LANES),
)
def test_reach_covers_union_of_its_terms(
    terms: list[Term], owner: str | None, workspace: str | None, lane: str | None
) -> None:
    reach = Reach(tuple(terms))
    held = [term.holds(owner=owner, workspace=workspace, lane=lane) for term in terms]
    assert reach.covers(owner=owner, workspace=workspace, lane=lane) == any(held)
    assert reach.is_empty == (not terms)
    assert not reach.is_whole or any(held)


def test_only_grant_for_all_covers_objects_without_workspace() -> None:
    everything = frozenset(PERMISSIONS)
    assert access([Grant(everything, "all")]).allows_everywhere("access:manage")
    for narrower in (
        Grant(everything, "own"),
        Grant(everything, "workspace", "a"),
        Grant(everything, "all", None, frozenset({"x"})),
    ):
        assert not access([narrower]).allows_everywhere("access:manage")


def test_token_and_grant_without_common_lane_cover_none() -> None:
    granted = Grant(frozenset({"jobs:read"}), "all", None, frozenset({"x"}))
    assert not access([granted], token_lanes=frozenset({"y"})).allows("jobs:read")


def test_seeded_roles_are_those_of_the_contract() -> None:
    assert set(SEEDED_ROLES["platform_admin"]) == set(PERMISSIONS)
    lacking = {"events:send", "access:manage", "audit:read"}
    assert set(PERMISSIONS) - set(SEEDED_ROLES["operator"]) == lacking
    assert all(set(given) <= set(PERMISSIONS) for given in SEEDED_ROLES.values())


# -- checks ------------------------------------------------------------------------------


def test_permissions_come_in_their_order_each_once() -> None:
    assert check_permissions(["jobs:read", "jobs:submit", "jobs:read"]) == (
        "jobs:submit",
        "jobs:read",
    )


@pytest.mark.parametrize(
    "given",
    ["jobs:read", None, 3, [], ["jobs:*"], ["jobs:read "], ["Jobs:read"], [["jobs:read"]], [None]],
)
def test_unknown_permissions_are_refused(given: object) -> None:
    with pytest.raises(InvalidInput, match="permissions"):
        check_role_permissions(given)


@pytest.mark.parametrize(
    "name",
    ["", " ann", "ann ", "a\x00b", "a\nb", "\ud800", "x" * 257, "é" * 129, 3, None,
     "schedule:nightly", "policy", "laneway"],
)  # fmt: skip
def test_name_that_no_row_should_hold_or_that_is_ours_is_refused(name: object) -> None:
    with pytest.raises(InvalidInput, match="name"):
        check_principal_name(name)


@pytest.mark.parametrize("lanes", [[], ["Bad Name"], ["x", ""], "x", 3, [None], ["a" * 64]])
def test_invalid_lane_names_are_refused(lanes: object) -> None:
    with pytest.raises(InvalidInput, match="lanes"):
        check_lanes(lanes)


@pytest.mark.parametrize(
    "scope,workspace",
    [("all", "a"), ("workspace", None), ("workspace", ""), ("own", "a\x00"), ("ALL", None),
     (None, None), ([], None)],
)  # fmt: skip
def test_scope_and_a_workspace_that_do_not_fit_are_refused(
    scope: object, workspace: object
) -> None:
    with pytest.raises(InvalidInput, match=r"scope|workspace"):
        check_scope(scope, workspace)


@pytest.mark.parametrize("life", [0, -1, 1e12, float("nan"), float("inf"), "90d", True])
def test_life_out_of_range_is_refused(life: object) -> None:
    with pytest.raises(InvalidInput, match="expires_in"):
        check_life(life)


# -- secrets ----------------------------------------------------------------------------------


@pytest.mark.parametrize("purpose", PREFIXES)
def test_secret_is_found_again_for_its_own_purpose_only(purpose: Purpose) -> None:
    secret = new_secret(purpose)
    assert len(secret.text) == len(PREFIXES[purpose]) + 43
    assert len(secret.digest) == 32
    assert secret.text.encode() not in secret.digest
    for other in PREFIXES:
        assert digest_of(secret.text, other) == (secret.digest if other == purpose else None)


def test_secrets_are_unique_and_hints_reveal_little() -> None:
    made = [new_secret() for _ in range(100)]
    assert len({secret.text for secret in made}) == 100
    assert all(secret.text.startswith(secret.hint) for secret in made)
    assert {len(secret.hint) for secret in made} == {6}


@given(st.text() | st.binary() | st.none() | st.integers())
def test_invalid_token_has_no_digest(text: object) -> None:
    assert digest_of(text) is None


@pytest.mark.parametrize("change", ["{}x", " {}", "{}\n", "{}\x00", "Bearer {}"])
def test_token_is_taken_only_whole(change: str) -> None:
    assert digest_of(change.format(new_secret().text)) is None
