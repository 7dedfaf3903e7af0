"""The statements that run for a handler, with the rights of a role."""

from __future__ import annotations

from laneway.domain.claim import Claim
from laneway.store import call_limits, caller_transaction, steps
from tests.control.earlier_statements import read_migrations, run_older_names
from tests.control.wait_statements import run_waits
from tests.support.job_factory import JobFactory


def prepare_handler(factory: JobFactory) -> list[Claim]:
    return [factory.running("a", unique_key="u"), factory.running("b")]


def run_handler(factory: JobFactory, data: list[Claim]) -> None:
    read_migrations(factory)
    run_older_names(factory, "handler")
    finished, guarded = data
    held = factory.run(caller_transaction.guard(guarded))
    assert held.answer == "held"
    assert factory.run(caller_transaction.is_still_in(held.xid))
    assert factory.run(caller_transaction.finish(finished, "1", 0.1)) == "finished"


def run_calls(factory: JobFactory, claim: Claim) -> None:
    assert factory.run(steps.save(claim, "one", "1", 0.1)).answer == "kept"
    assert factory.run(steps.read(claim)) == {"one": "1"}
    assert factory.run(call_limits.acquire(claim, {"rated": 1})).answer == "granted"
    assert factory.run(call_limits.release(claim, {"rated": 0})) == "given"
    run_waits(factory, claim)
