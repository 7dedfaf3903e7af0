"""Two lanes that share a limit, and a limit held outside of jobs."""

from __future__ import annotations

from uuid import uuid4

from laneway.store import holds
from tests.support.job_factory import JobFactory


def prepare_turns(factory: JobFactory) -> None:
    factory.conn.execute("insert into laneway.limits (name, max_concurrent) values ('turns', 1)")
    for name, priority in (("calm", 0), ("eager", 5)):
        factory.conn.execute(
            "insert into laneway.worker_lanes (name, job_types, max_slots) values (%s, %s, null)",
            [f"{name}_lane", [name]],
        )
        factory.publish(name, limits=("turns",))
        for _ in range(2 if name == "calm" else 1):
            factory.submit(name, priority=priority)


def run_turns(factory: JobFactory) -> None:
    """The limit goes to the higher priority, and back when that lane has no more jobs."""
    (first,) = factory.claim("calm")
    assert factory.claim("eager") == []
    factory.settle(first)
    assert factory.claim("calm") == []
    (second,) = factory.claim("eager")
    factory.settle(second)
    assert factory.claim("eager") == []
    (third,) = factory.claim("calm")
    factory.settle(third)


def run_holds(factory: JobFactory) -> None:
    held, holder = uuid4(), holds.Holder(uuid4(), "host")
    assert factory.run(holds.hold(held, holder, ["openai"], 0, 15.0)).answer == "granted"
    (found,) = factory.run(holds.find_holders(["openai"]))
    assert "a process on host" in found.holders
    assert factory.run(holds.renew([held], 15.0)) == set()
    assert factory.run(holds.drop([held])) == 1
