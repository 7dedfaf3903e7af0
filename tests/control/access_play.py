"""Every statement of the server about access, once, to test the rights of its role."""

from __future__ import annotations

from laneway.domain.bounds import BoundsChange
from laneway.domain.token import new_secret
from laneway.store import access, sessions
from tests.control.scene import Scene


def play_access(cast: Scene) -> None:
    first = cast.run(access.create_first_principal("admin", "server"))
    cast.run(access.lock_admins())
    cast.run(access.loses_last_admin())
    cast.run(access.create_principal("ann", "person", "admin"))
    assert len(cast.run(access.list_principals(10))) == 2
    assert cast.run(access.lock_principal("ann")).kind == "person"
    cast.run(access.create_role("tuner", ["jobs:read"], "admin"))
    assert cast.run(access.lock_role("tuner")).permissions == ("jobs:read",)
    assert cast.run(access.lock_role_shared("tuner"))
    cast.run(access.change_role("tuner", ["jobs:submit"], "admin"))
    grant = None
    for bounds in (BoundsChange(), BoundsChange(max_priority=5)):
        given = access.grant_role(first.id, "tuner", "own", None, ["a"], "admin", bounds)
        grant = cast.run(given).grant
    assert grant is not None
    assert cast.run(access.list_grants(10)) == [grant]
    token, session, link = new_secret(), new_secret("session"), new_secret("link")
    made = cast.run(
        access.create_token(first.id, "t", token.hint, token.digest, None, None, 60.0, "admin")
    )
    assert cast.run(access.list_tokens(10)) == [made]
    assert cast.run(access.authenticate(token.digest)).allows("jobs:submit")
    assert cast.run(access.lock_token(made.id)).last_used_at is not None
    assert cast.run(access.revoke_token(made.id, "admin")) is not None
    cast.run(sessions.create_link(first.id, link.digest, 60.0))
    assert cast.run(
        sessions.open_session(link.digest, session.digest, "csrf", 60.0, new_secret().digest)
    )
    cast.run(access.list_roles(10))
    assert cast.run(sessions.authenticate(session.digest, 60.0)).csrf == "csrf"
    assert cast.run(sessions.close_session(session.digest)) == (first.id, "admin")
    assert cast.run(access.revoke_grant(grant.id)) == grant
    assert cast.run(access.delete_role("tuner"))
    assert cast.run(access.switch_principal(first.id, enabled=False)).is_disabled
