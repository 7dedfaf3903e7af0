"""The statements of end hooks, run with the rights of a role."""

from __future__ import annotations

from laneway.domain.end_hook import EndHook
from laneway.store import end_hooks
from tests.control.wait_statements import Session


def publish_hooks(session: Session) -> None:
    hook = EndHook(name="on_end.encode", job_types=("encode",))
    assert session.run(end_hooks.publish({"app": [hook]})) == []
    assert session.run(end_hooks.publish({"app": []})) == []
