"""Every access statement of the server once, to test the rights of its role."""

from __future__ import annotations

from laneway.domain.bounds import BoundsChange
from laneway.domain.token import new_secret
from laneway.store import access, sessions
from tests.support.job_factory import JobFactory


def run_access(factory: JobFactory) -> None:
    first = factory.run(access.create_first_principal("admin", "server"))
    factory.run(access.lock_admins())
    factory.run(access.loses_last_admin())
    factory.run(access.create_principal("ann", "person", "admin"))
    assert len(factory.run(access.list_principals(10))) == 2
    assert factory.run(access.lock_principal("ann")).kind == "person"
    factory.run(access.create_role("tuner", ["jobs:read"], "admin"))
    assert factory.run(access.lock_role("tuner")).permissions == ("jobs:read",)
    assert factory.run(access.lock_role_shared("tuner"))
    factory.run(access.change_role("tuner", ["jobs:submit"], "admin"))
    grant = None
    for bounds in (BoundsChange(), BoundsChange(max_priority=5)):
        given = access.grant_role(first.id, "tuner", "own", None, ["a"], "admin", bounds)
        grant = factory.run(given).grant
    assert grant is not None
    assert factory.run(access.list_grants(10)) == [grant]
    token, session, link = new_secret(), new_secret("session"), new_secret("link")
    made = factory.run(
        access.create_token(first.id, "t", token.hint, token.digest, None, None, 60.0, "admin")
    )
    assert factory.run(access.list_tokens(10)) == [made]
    assert factory.run(access.authenticate(token.digest)).allows("jobs:submit")
    assert factory.run(access.list_expiring_tokens(10)) == []
    assert factory.run(access.lock_token(made.id)).last_used_at is not None
    assert factory.run(access.revoke_token(made.id, "admin")) is not None
    factory.run(sessions.create_link(first.id, link.digest, 60.0))
    assert factory.run(
        sessions.open_session(link.digest, session.digest, "csrf", 60.0, new_secret().digest)
    )
    factory.run(access.list_roles(10))
    assert factory.run(sessions.authenticate(session.digest, 60.0)).csrf == "csrf"
    assert factory.run(sessions.close_session(session.digest)) == (first.id, "admin")
    assert factory.run(access.revoke_grant(grant.id)) == grant
    assert factory.run(access.delete_role("tuner"))
    assert factory.run(access.switch_principal(first.id, enabled=False)).is_disabled
