"""Two lanes that share a limit, and a limit held outside of jobs."""

from __future__ import annotations

from uuid import uuid4

from laneway.store import holds
from tests.control.scene import Scene


def prepare_turns(scene: Scene) -> None:
    scene.conn.execute("insert into laneway.limits (name, max_concurrent) values ('turns', 1)")
    for name, priority in (("calm", 0), ("eager", 5)):
        scene.conn.execute(
            "insert into laneway.worker_lanes (name, job_types, max_slots) values (%s, %s, null)",
            [f"{name}_lane", [name]],
        )
        scene.publish(name, limits=("turns",))
        for _ in range(2 if name == "calm" else 1):
            scene.submit(name, priority=priority)


def run_turns(scene: Scene) -> None:
    """The limit goes to the higher priority, and back when that lane has no more jobs."""
    (first,) = scene.claim("calm")
    assert scene.claim("eager") == []
    scene.settle(first)
    assert scene.claim("calm") == []
    (second,) = scene.claim("eager")
    scene.settle(second)
    assert scene.claim("eager") == []
    (third,) = scene.claim("calm")
    scene.settle(third)


def run_holds(scene: Scene) -> None:
    held, holder = uuid4(), holds.Holder(uuid4(), "host")
    assert scene.run(holds.hold(held, holder, ["openai"], 0, 15.0)).answer == "granted"
    (found,) = scene.run(holds.find_holders(["openai"]))
    assert "a process on host" in found.holders
    assert scene.run(holds.renew([held], 15.0)) == set()
    assert scene.run(holds.drop([held])) == 1
