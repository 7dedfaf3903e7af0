"""Two lanes that want one limit, as a worker meets them."""

from __future__ import annotations

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


def play_turns(scene: Scene) -> None:
    """The limit goes to the higher priority, and back when that has no more jobs."""
    (first,) = scene.claim("calm")
    assert scene.claim("eager") == []
    scene.settle(first)
    assert scene.claim("calm") == []
    (second,) = scene.claim("eager")
    scene.settle(second)
    assert scene.claim("eager") == []
    (third,) = scene.claim("calm")
    scene.settle(third)
