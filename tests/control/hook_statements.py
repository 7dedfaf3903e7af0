"""The statements of end hooks and webhooks, run with the rights of a role."""

from __future__ import annotations

from laneway.domain.end_hook import EndHook
from laneway.domain.webhook import Webhook, new_secret
from laneway.store import end_hooks, webhooks
from tests.control.wait_statements import Session


def publish_hooks(session: Session) -> None:
    hook = EndHook(name="on_end.encode", job_types=("encode",))
    assert session.run(end_hooks.publish({"app": [hook]})) == []
    assert session.run(end_hooks.publish({"app": []})) == []


def read_target(session: Session) -> None:
    """Read where a delivery goes, as a worker does, without any webhook."""
    assert session.run(webhooks.target("erp")) is None


def run_webhooks(session: Session) -> None:
    made = Webhook("erp", "https://example.com/")
    assert session.run(webhooks.create(made, new_secret(), "me"))
    assert session.run(webhooks.change("erp", {"secret": new_secret(), "enabled": False}, "me"))
    assert session.run(webhooks.change("erp", {"enabled": True}, "me"))
    assert session.run(webhooks.submit_test("erp", {"status": "completed"})) is not None
    assert [each.name for each in session.run(webhooks.read())] == ["erp"]
    assert len(session.run(webhooks.target("erp")).secrets) == 2
    assert session.run(webhooks.delete("erp"))
