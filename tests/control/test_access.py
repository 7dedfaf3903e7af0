"""Laws of access: credentials, their end, and their audit."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import pytest

from laneway.control import access, sessions
from laneway.domain.access import NewToken
from laneway.domain.actor import Actor
from laneway.domain.codec import to_json
from laneway.domain.permissions import SEEDED_ROLES
from laneway.domain.token import new_secret
from laneway.errors import InvalidInput, NotFound, Refused, Unauthenticated
from laneway.store import access as store
from laneway.store.database import Database
from tests.support.job_factory import JobFactory

Verb = Callable[[Database], Awaitable[Any]]
PAST = "clock_timestamp() - interval '1 second'"


def audit_entries(factory: JobFactory) -> list[tuple[Any, ...]]:
    return factory.conn.execute(
        "select actor, action, kind, name, outcome from laneway.audit order by id"
    ).fetchall()


async def ann(db: Database, *roles: str, scope: str = "all", **place: Any) -> None:
    """A person with these roles."""
    await access.create_principal(db, "ann", "person", by="root")
    for role in roles:
        await access.grant_role(db, "ann", role, scope, **place, by="root")


async def a_token(db: Database, **more: Any) -> NewToken:
    await ann(db, "viewer")
    return await access.create_token(db, "ann", "laptop", **more, by="root")


async def is_known(db: Database, secret: str) -> bool:
    verb = access.authenticate_session if secret.startswith("lws_") else access.authenticate
    try:
        await verb(db, secret)
    except Unauthenticated:
        return False
    return True


# -- tokens -----------------------------------------------------------------------------------


async def test_token_brings_its_principal_and_all_grants(db: Database) -> None:
    await ann(db, "viewer", "approver")
    lanes = ["system", "default", "system"]
    await access.grant_role(db, "ann", "submitter", "own", "lab", lanes, by="root")
    made = await access.create_token(db, "ann", "laptop", by="root")
    found = await access.authenticate(db, made.secret)
    assert (found.name, found.kind, found.csrf) == ("ann", "person", None)
    assert (found.token_permissions, found.token_lanes) == (None, None)
    assert {(g.permissions, g.scope, g.workspace, g.lanes) for g in found.grants} == {
        (frozenset(SEEDED_ROLES["viewer"]), "all", None, None),
        (frozenset(SEEDED_ROLES["approver"]), "all", None, None),
        (frozenset(SEEDED_ROLES["submitter"]), "own", "lab", frozenset(lanes)),
    }


async def test_principal_without_a_role_is_known_and_may_nothing(db: Database) -> None:
    await ann(db)
    made = await access.create_token(db, "ann", "laptop", by="root")
    found = await access.authenticate(db, made.secret)
    assert found.grants == ()
    assert not found.allows("jobs:read")


async def test_narrowed_token_is_shown_as_narrowed(db: Database) -> None:
    made = await a_token(db, permissions=["jobs:read"], lanes=["system"])
    assert (made.token.permissions, made.token.lanes) == (("jobs:read",), ("system",))
    found = await access.authenticate(db, made.secret)
    assert found.token_permissions == frozenset({"jobs:read"})
    assert not found.allows("workers:view")
    assert found.reach("jobs:read").covers(owner="x", workspace="y", lane="system")
    assert not found.reach("jobs:read").covers(owner="x", workspace="y", lane="default")


@pytest.mark.parametrize(
    "ending",
    [
        f"update laneway.tokens set expires_at = {PAST}",
        "update laneway.tokens set revoked_at = clock_timestamp()",
        "update laneway.principals set disabled_at = clock_timestamp()",
        "delete from laneway.tokens",
    ],
)
async def test_token_without_power_is_nobodys(
    db: Database, factory: JobFactory, ending: str
) -> None:
    made = await a_token(db)
    assert await is_known(db, made.secret)
    factory.conn.execute(ending.encode())
    with pytest.raises(Unauthenticated, match=r"^the token is not valid$"):
        await access.authenticate(db, made.secret)


@pytest.mark.parametrize("text", ["", "lw_", "lw_" + "a" * 43, "x' or '1'='1", "\x00", "\ud800"])
async def test_invalid_token_has_no_principal(db: Database, text: str) -> None:
    with pytest.raises(Unauthenticated):
        await access.authenticate(db, text)


async def test_revoking_and_disabling_work_at_once(db: Database) -> None:
    made = await a_token(db)
    await access.disable_principal(db, "ann", by="root")
    assert not await is_known(db, made.secret)
    await access.enable_principal(db, "ann", by="root")
    assert await is_known(db, made.secret)
    gone = await access.revoke_token(db, made.token.id, by="bob")
    assert (gone.revoked_by, gone.revoked_at is None) == ("bob", False)
    assert not await is_known(db, made.secret)
    with pytest.raises(Refused, match="already revoked"):
        await access.revoke_token(db, made.token.id, by="eve")


async def test_token_lives_ninety_days_by_default(db: Database, factory: JobFactory) -> None:
    await a_token(db)
    for life in (60.0, None):
        await access.create_token(db, "ann", "other", expires_in=life, by="root")
    lives = factory.conn.execute(
        "select round(extract(epoch from expires_at - created_at))::integer from laneway.tokens"
        " order by id"
    ).fetchall()
    assert lives == [(90 * 86400,), (60,), (None,)]


async def test_its_use_is_noted_once_a_minute(db: Database, factory: JobFactory) -> None:
    made = await a_token(db)

    def used() -> Any:
        found = factory.conn.execute(
            "select last_used_at, xmin::text from laneway.tokens"
        ).fetchone()
        assert found is not None
        return found

    await access.authenticate(db, made.secret)
    first = used()
    assert first[0] is not None
    await access.authenticate(db, made.secret)
    assert used() == first
    factory.conn.execute("update laneway.tokens set last_used_at = last_used_at - interval '61 s'")
    await access.authenticate(db, made.secret)
    assert used()[0] > first[0]


async def test_authentication_does_not_wait_for_locked_token(
    db: Database, factory: JobFactory
) -> None:
    made = await a_token(db)
    with factory.conn.transaction():
        factory.conn.execute("select from laneway.tokens for update")
        assert (await access.authenticate(db, made.secret)).name == "ann"


async def test_database_holds_no_usable_secret(db: Database, factory: JobFactory) -> None:
    made = await a_token(db)
    link = await sessions.create_login_link(db, "ann", by="root")
    opened = await sessions.open_session(db, link, by="browser")
    other = await sessions.create_login_link(db, "ann", by="root")
    tables = ("tokens", "sessions", "login_links", "audit", "principals", "role_grants")
    dump = "\n".join(
        str(row)
        for table in tables
        for row in factory.conn.execute(f"select to_jsonb(t)::text from laneway.{table} t".encode())
    )
    for secret in (made.secret, link, opened.cookie, other):
        assert secret.split("_", 1)[1] not in dump
        assert secret[:20] not in dump
    assert made.token.hint in dump
    listed = json.dumps(to_json(await access.list_tokens(db)))
    assert made.secret not in listed


# -- principals, roles, grants ----------------------------------------------------------------


async def test_lists_go_page_by_page(db: Database) -> None:
    for name in ("cid", "ann", "bob"):
        await access.create_principal(db, name, "service", by="root")
    first = await access.list_principals(db, limit=2)
    rest = await access.list_principals(db, limit=2, after=first[-1].name)
    assert [p.name for p in (*first, *rest)] == ["ann", "bob", "cid"]
    assert [r.name for r in await access.list_roles(db)] == sorted(SEEDED_ROLES)
    for name in ("ann", "bob"):
        await access.grant_role(db, name, "viewer", "all", by="root")
        await access.create_token(db, name, "t", by="root")
    grants = await access.list_grants(db, role="viewer", limit=1)
    grants += await access.list_grants(db, role="viewer", after=grants[0].id)
    assert [g.principal for g in grants] == ["ann", "bob"]
    assert [g.principal for g in await access.list_grants(db, principal="bob")] == ["bob"]
    tokens = await access.list_tokens(db, limit=1)
    tokens += await access.list_tokens(db, after=tokens[0].id)
    assert [t.principal for t in tokens] == ["ann", "bob"]
    assert [t.principal for t in await access.list_tokens(db, principal="bob")] == ["bob"]


async def test_seeded_roles_are_those_the_code_knows(db: Database) -> None:
    assert {r.name: r.permissions for r in await access.list_roles(db)} == SEEDED_ROLES


@pytest.mark.parametrize("role", SEEDED_ROLES)
async def test_seeded_role_stays_as_it_is(db: Database, role: str) -> None:
    with pytest.raises(Refused, match="cannot be changed"):
        await access.change_role(db, role, ["jobs:read"], by="root")
    with pytest.raises(Refused, match="cannot be deleted"):
        await access.delete_role(db, role, by="root")


async def test_changed_role_applies_to_all_its_principals(db: Database) -> None:
    await access.create_role(db, "tuner", ["workers:manage"], by="root")
    await ann(db, "tuner")
    made = await access.create_token(db, "ann", "laptop", by="root")
    assert (await access.authenticate(db, made.secret)).allows("workers:manage")
    await access.change_role(db, "tuner", ["jobs:read"], by="root")
    found = await access.authenticate(db, made.secret)
    assert (found.allows("workers:manage"), found.allows("jobs:read")) == (False, True)


async def test_unused_role_can_be_deleted(db: Database) -> None:
    await access.create_role(db, "tuner", ["workers:manage"], by="root")
    await ann(db)
    grant = await access.grant_role(db, "ann", "tuner", "all", by="root")
    with pytest.raises(Refused, match="is granted"):
        await access.delete_role(db, "tuner", by="root")
    await access.revoke_grant(db, grant.id, by="root")
    await access.delete_role(db, "tuner", by="root")
    with pytest.raises(NotFound):
        await access.grant_role(db, "ann", "tuner", "all", by="root")


async def test_role_is_either_deleted_or_granted(db: Database) -> None:
    await ann(db)
    for n in range(5):
        role = f"r{n}"
        await access.create_role(db, role, ["jobs:read"], by="root")
        answers = await asyncio.gather(
            access.delete_role(db, role, by="root"),
            access.grant_role(db, "ann", role, "all", by="root"),
            return_exceptions=True,
        )
        refused = [each for each in answers if isinstance(each, (Refused, NotFound))]
        assert len(refused) == 1, answers


async def test_same_grant_is_given_once(db: Database) -> None:
    await ann(db)
    same = [
        access.grant_role(db, "ann", "viewer", "all", lanes=["system"], by="root") for _ in range(3)
    ]
    answers = await asyncio.gather(*same, return_exceptions=True)
    assert sum(isinstance(each, Refused) for each in answers) == 2
    await access.grant_role(db, "ann", "viewer", "all", by="root")
    assert len(await access.list_grants(db)) == 2


REFUSALS: list[tuple[type[Exception], Verb]] = [
    (Refused, lambda db: access.create_principal(db, "ann", "service", by="root")),
    (InvalidInput, lambda db: access.create_principal(db, "bob", "robot", by="root")),
    (InvalidInput, lambda db: access.create_principal(db, "schedule:x", "person", by="root")),
    (InvalidInput, lambda db: access.create_principal(db, "bob", "person", by="")),
    (Refused, lambda db: access.enable_principal(db, "ann", by="root")),
    (NotFound, lambda db: access.disable_principal(db, "missing", by="root")),
    (Refused, lambda db: access.create_role(db, "viewer", ["jobs:read"], by="root")),
    (InvalidInput, lambda db: access.create_role(db, "Bad Name", ["jobs:read"], by="root")),
    (InvalidInput, lambda db: access.create_role(db, "r", ["jobs:all"], by="root")),
    (InvalidInput, lambda db: access.create_role(db, "r", [], by="root")),
    (NotFound, lambda db: access.change_role(db, "nothing", ["jobs:read"], by="root")),
    (NotFound, lambda db: access.delete_role(db, "nothing", by="root")),
    (NotFound, lambda db: access.grant_role(db, "missing", "viewer", "all", by="root")),
    (NotFound, lambda db: access.grant_role(db, "ann", "nothing", "all", by="root")),
    (InvalidInput, lambda db: access.grant_role(db, "ann", "viewer", "some", by="root")),
    (InvalidInput, lambda db: access.grant_role(db, "ann", "viewer", "workspace", by="root")),
    (InvalidInput, lambda db: access.grant_role(db, "ann", "viewer", "all", "lab", by="root")),
    (InvalidInput, lambda db: access.grant_role(db, "ann", "viewer", "all", lanes=[], by="root")),
    (InvalidInput, lambda db: access.grant_role(db, "ann", "viewer", "all", lanes=["A"], by="r")),
    (InvalidInput, lambda db: access.grant_role(db, "ann", "viewer", "all", lanes=["a"], by="r")),
    (NotFound, lambda db: access.revoke_grant(db, uuid4(), by="root")),
    (NotFound, lambda db: access.create_token(db, "missing", "t", by="root")),
    (InvalidInput, lambda db: access.create_token(db, "ann", "", by="root")),
    (InvalidInput, lambda db: access.create_token(db, "ann", "t", permissions=["x"], by="root")),
    (InvalidInput, lambda db: access.create_token(db, "ann", "t", lanes=["A b"], by="root")),
    (InvalidInput, lambda db: access.create_token(db, "ann", "t", lanes=["a"], by="root")),
    (InvalidInput, lambda db: access.create_token(db, "ann", "t", expires_in=0, by="root")),
    (InvalidInput, lambda db: access.create_token(db, "ann", "t", job_types=[" a"], by="root")),
    (InvalidInput, lambda db: access.create_token(db, "ann", "t", job_types="a", by="root")),
    (NotFound, lambda db: access.revoke_token(db, uuid4(), by="root")),
    (NotFound, lambda db: sessions.create_login_link(db, "missing", by="root")),
    (Unauthenticated, lambda db: sessions.open_session(db, "lwl_" + "a" * 43, by="browser")),
]


async def test_refused_verb_changes_nothing_and_leaves_no_audit_entry(
    db: Database, factory: JobFactory
) -> None:
    await ann(db)
    before = audit_entries(factory)
    for error, verb in REFUSALS:
        with pytest.raises(error):
            await verb(db)
    assert audit_entries(factory) == before
    assert [p.name for p in await access.list_principals(db)] == ["ann"]


async def test_every_change_leaves_one_audit_entry(db: Database, factory: JobFactory) -> None:
    root = Actor("root", door="http", request_id="r1", address="::1")
    await access.create_principal(db, "ann", "person", by=root)
    await access.create_role(db, "tuner", ["jobs:read"], by=root)
    await access.change_role(db, "tuner", ["jobs:submit"], by=root)
    grant = await access.grant_role(db, "ann", "tuner", "workspace", "lab", by=root)
    await access.revoke_grant(db, grant.id, by=root)
    await access.delete_role(db, "tuner", by=root)
    made = await access.create_token(db, "ann", "laptop", by=root)
    await access.revoke_token(db, made.token.id, by=root)
    await access.disable_principal(db, "ann", by=root)
    await access.enable_principal(db, "ann", by=root)
    link = await sessions.create_login_link(db, "ann", by=root)
    opened = await sessions.open_session(db, link, by=Actor("unknown", door="http"))
    await sessions.close_session(db, opened.cookie, by=Actor("ann", door="http"))
    await sessions.close_session(db, opened.cookie, by="ann")
    assert audit_entries(factory) == [
        (actor, action, "access", name, "done")
        for actor, action, name in [
            ("root", "principal.created", "ann"),
            ("root", "role.created", "tuner"),
            ("root", "role.changed", "tuner"),
            ("root", "role.granted", "ann"),
            ("root", "role.revoked", "ann"),
            ("root", "role.deleted", "tuner"),
            ("root", "token.created", "ann"),
            ("root", "token.revoked", "ann"),
            ("root", "principal.disabled", "ann"),
            ("root", "principal.enabled", "ann"),
            ("root", "link.created", "ann"),
            ("ann", "session.opened", "ann"),
            ("ann", "session.closed", "ann"),
        ]
    ]
    kept = factory.conn.execute(
        "select before ->> 'permissions', after ->> 'permissions', door, request_id, address"
        " from laneway.audit where action = 'role.changed'"
    ).fetchone()
    assert kept == ('["jobs:read"]', '["jobs:submit"]', "http", "r1", "::1")


def test_no_verb_that_changes_something_is_missing_in_that_story() -> None:
    source = inspect.getsource(test_every_change_leaves_one_audit_entry)
    verbs = {
        f"{module.__name__.rpartition('.')[2]}.{name}"
        for module in (access, sessions)
        for name, verb in inspect.getmembers(module, inspect.iscoroutinefunction)
        if verb.__module__ == module.__name__
        and not name.startswith("_")
        and "by" in inspect.signature(verb).parameters
    }
    assert {verb for verb in verbs if f"{verb}(" not in source} == {"sessions.bootstrap"}


# -- sessions ---------------------------------------------------------------------------------


async def logged_in(db: Database) -> sessions.NewSession:
    await ann(db, "viewer")
    link = await sessions.create_login_link(db, "ann", by="root")
    return await sessions.open_session(db, link, by="browser")


async def test_link_opens_one_session(db: Database) -> None:
    await ann(db, "viewer")
    link = await sessions.create_login_link(db, "ann", by="root")
    answers = await asyncio.gather(
        *(sessions.open_session(db, link, by="browser") for _ in range(3)), return_exceptions=True
    )
    (opened,) = [each for each in answers if isinstance(each, sessions.NewSession)]
    assert sum(isinstance(each, Unauthenticated) for each in answers) == 2
    found = await access.authenticate_session(db, opened.cookie)
    assert found == opened.access
    assert (found.name, found.allows("jobs:read")) == ("ann", True)
    assert found.csrf
    assert opened.cookie != found.csrf


async def test_link_that_was_not_used_in_time_opens_nothing(
    db: Database, factory: JobFactory
) -> None:
    await ann(db)
    link = await sessions.create_login_link(db, "ann", by="root")
    left = factory.conn.execute(
        "select extract(epoch from expires_at - clock_timestamp()) from laneway.login_links"
    ).fetchone()
    assert left is not None
    assert 0 < left[0] <= 600
    factory.conn.execute(f"update laneway.login_links set expires_at = {PAST}".encode())
    with pytest.raises(Unauthenticated):
        await sessions.open_session(db, link, by="browser")


async def test_only_enabled_person_gets_link(db: Database) -> None:
    await access.create_principal(db, "bot", "service", by="root")
    with pytest.raises(Refused, match="service"):
        await sessions.create_login_link(db, "bot", by="root")
    await ann(db)
    await access.disable_principal(db, "ann", by="root")
    with pytest.raises(Refused, match="disabled"):
        await sessions.create_login_link(db, "ann", by="root")
    with pytest.raises(Refused, match="disabled"):
        await access.create_token(db, "ann", "t", by="root")


@pytest.mark.parametrize(
    "ending",
    [
        f"update laneway.sessions set expires_at = {PAST}",
        "update laneway.sessions set seen_at = clock_timestamp() - interval '2 hours 1 second'",
        "update laneway.principals set disabled_at = clock_timestamp()",
    ],
)
async def test_session_ends_by_age_by_idleness_and_with_its_owner(
    db: Database, factory: JobFactory, ending: str
) -> None:
    opened = await logged_in(db)
    factory.conn.execute(ending.encode())
    with pytest.raises(Unauthenticated, match="session has ended"):
        await access.authenticate_session(db, opened.cookie)


async def test_session_in_use_is_not_idle_but_still_ends(db: Database, factory: JobFactory) -> None:
    opened = await logged_in(db)
    for _ in range(2):
        factory.conn.execute(
            "update laneway.sessions set seen_at = seen_at - interval '119 minutes'"
        )
        assert await is_known(db, opened.cookie)
    life = factory.conn.execute(
        "select round(extract(epoch from expires_at - created_at))::integer from laneway.sessions"
    ).fetchone()
    assert life == (12 * 3600,)


async def test_logging_out_ends_the_session(db: Database) -> None:
    opened = await logged_in(db)
    await sessions.close_session(db, opened.cookie, by="ann")
    assert not await is_known(db, opened.cookie)
    await sessions.close_session(db, "nonsense", by="ann")


async def test_logging_in_again_changes_the_secrets_and_ends_the_old_ones(db: Database) -> None:
    first = await logged_in(db)
    link = await sessions.create_login_link(db, "ann", by="root")
    second = await sessions.open_session(db, link, by="browser", replaces=first.cookie)
    assert second.cookie != first.cookie
    assert second.access.csrf != first.access.csrf
    assert (await is_known(db, first.cookie), await is_known(db, second.cookie)) == (False, True)


async def test_disabling_ends_sessions_and_links_for_good(db: Database) -> None:
    opened = await logged_in(db)
    link = await sessions.create_login_link(db, "ann", by="root")
    await access.disable_principal(db, "ann", by="root")
    await access.enable_principal(db, "ann", by="root")
    assert not await is_known(db, opened.cookie)
    with pytest.raises(Unauthenticated):
        await sessions.open_session(db, link, by="browser")


async def test_secret_is_valid_only_for_its_purpose(db: Database) -> None:
    made = await a_token(db)
    link = await sessions.create_login_link(db, "ann", by="root")
    opened = await sessions.open_session(db, link, by="browser")
    for secret in (opened.cookie, opened.access.csrf, new_secret("csrf").text):
        with pytest.raises(Unauthenticated):
            await access.authenticate(db, str(secret))
    for secret in (made.secret, link):
        with pytest.raises(Unauthenticated):
            await access.authenticate_session(db, secret)


# -- the first start --------------------------------------------------------------------------


async def test_first_start_makes_an_admin_once(db: Database, factory: JobFactory) -> None:
    answers = await asyncio.gather(*(sessions.bootstrap(db, "laneway server") for _ in range(3)))
    (link,) = [each for each in answers if each is not None]
    assert await sessions.bootstrap(db, "laneway server") is None
    opened = await sessions.open_session(db, link, by="browser")
    assert (opened.access.name, opened.access.kind) == ("admin", "person")
    assert opened.access.allows_everywhere("access:manage")
    assert [act[1] for act in audit_entries(factory)] == ["principal.created", "session.opened"]
    assert await access.list_tokens(db) == []


async def test_start_with_existing_principals_creates_none(db: Database) -> None:
    await access.create_principal(db, "bot", "service", by="root")
    assert await sessions.bootstrap(db, "laneway server") is None
    assert [p.name for p in await access.list_principals(db)] == ["bot"]


# -- the last administrator, and names that pass for others -------------------------------------


async def test_last_platform_admin_keeps_its_power(db: Database) -> None:
    for name in ("ann", "bob"):
        await access.create_principal(db, name, "person", by="root")
        await access.grant_role(db, name, "platform_admin", "all", by="root")
    await access.disable_principal(db, "bob", by="root")
    with pytest.raises(Refused, match="last platform_admin"):
        await access.disable_principal(db, "ann", by="root")
    (grant,) = await access.list_grants(db, principal="ann")
    with pytest.raises(Refused, match="last platform_admin"):
        await access.revoke_grant(db, grant.id, by="root")
    await access.enable_principal(db, "bob", by="root")
    await access.revoke_grant(db, grant.id, by="root")
    await access.disable_principal(db, "ann", by="root")


async def test_two_admins_cannot_disable_each_other_at_once(
    db: Database, factory: JobFactory
) -> None:
    for name in ("ann", "bob"):
        await access.create_principal(db, name, "person", by="root")
        await access.grant_role(db, name, "platform_admin", "all", by="root")
    with factory.conn.transaction():
        factory.run(store.lock_admins())
        factory.conn.execute("update laneway.principals set disabled_at = now() where name = 'bob'")
        disabling = asyncio.create_task(access.disable_principal(db, "ann", by="root"))
        await until_waiting(factory)
    with pytest.raises(Refused, match="last platform_admin"):
        await disabling


async def until_waiting(factory: JobFactory) -> None:
    """Return once a session waits for an advisory lock."""
    waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
    async with asyncio.timeout(60):
        # pg_locks has no event to wait for.
        while factory.conn.execute(waiting).fetchall() == [(0,)]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_audit_names_owner_of_token_or_link(db: Database, factory: JobFactory) -> None:
    await ann(db)
    await access.create_token(db, "ann", "laptop", by="keeper")
    await sessions.create_login_link(db, "ann", by="keeper")
    await access.create_token(db, "ann", "phone", by="ann")
    kept = factory.conn.execute(
        "select after ->> 'acting_for' from laneway.audit where name = 'ann'"
        " and action in ('token.created', 'link.created') order by id"
    ).fetchall()
    assert kept == [("ann",), ("ann",), (None,)]


@pytest.mark.parametrize(
    "name", ["\u0430lice", "al\u03b9ce", "\uff41lice", "Laneway", "POLICY", "nobody", "Schedule:x"]
)
async def test_name_that_passes_for_another_is_refused(db: Database, name: str) -> None:
    with pytest.raises(InvalidInput, match="name"):
        await access.create_principal(db, name, "person", by="root")


@pytest.mark.parametrize(
    "name", ["alice@example.org", "Ирина", "李雷", "\u0391\u03bd\u03bd\u03b1", "bot-7"]
)
async def test_name_of_one_alphabet_is_accepted(db: Database, name: str) -> None:
    assert (await access.create_principal(db, name, "person", by="root")).name == name


async def test_grant_that_covers_nothing_is_refused(db: Database) -> None:
    await access.create_principal(db, "ann", "person", by="root")
    await access.create_role(db, "sender", ["events:send"], by="root")
    with pytest.raises(InvalidInput, match="own covers nothing of the role sender: events:send"):
        await access.grant_role(db, "ann", "sender", "own", by="root")
    await access.grant_role(db, "ann", "sender", "workspace", "default", by="root")
    await access.create_role(db, "mixed", ["jobs:read", "events:send"], by="root")
    await access.grant_role(db, "ann", "mixed", "own", by="root")
