"""The statements of end hooks and webhooks, run with the rights of a role."""

from __future__ import annotations

from laneway.domain.end_hook import EndHook
from laneway.domain.webhook import Webhook, new_secret
from laneway.store import end_hooks, webhooks
from tests.support.job_factory import JobFactory


def publish_hooks(factory: JobFactory) -> None:
    hook = EndHook(name="on_end.encode", job_types=("encode",))
    assert factory.run(end_hooks.publish({"app": [hook]})) == []
    assert factory.run(end_hooks.publish({"app": []})) == []


def read_target(factory: JobFactory) -> None:
    """Read where a delivery goes, as a worker does, without any webhook."""
    assert factory.run(webhooks.target("erp")) is None


def run_webhooks(factory: JobFactory) -> None:
    factory.run(end_hooks.job_types_of())
    made = Webhook("erp", "https://example.com/")
    assert factory.run(webhooks.create(made, new_secret(), "me"))
    assert factory.run(webhooks.change("erp", {"secret": new_secret(), "enabled": False}, "me"))
    assert factory.run(webhooks.change("erp", {"enabled": True}, "me"))
    assert factory.run(webhooks.submit_test("erp", {"status": "completed"})) is not None
    assert [each.name for each in factory.run(webhooks.read())] == ["erp"]
    assert len(factory.run(webhooks.target("erp")).secrets) == 2
    assert factory.run(webhooks.delete("erp"))
