"""The statements of a client, run with the rights of a role."""

from __future__ import annotations

import asyncio
from typing import Any

from laneway.client import Client, Given
from laneway.config.settings import Settings
from laneway.domain.claim import Claim
from laneway.domain.job import NewJob, new_job_id
from laneway.store import audit, jobs, notify, sent_events, submit_and_wake, waits, workers
from tests.control import flow_statements
from tests.control.approval_statements import prepare_gates
from tests.control.earlier_statements import read_migrations
from tests.control.limit_statements import run_holds
from tests.support.job_factory import JobFactory


def prepare_client(factory: JobFactory) -> dict[str, Any]:
    if factory.run(workers.published(["costly"])) == {}:
        prepare_gates(factory)
    factory.conn.execute(
        "insert into laneway.limits (name, rate_count, rate_period_s, scope)"
        " values ('near', 9, 1, 'host') on conflict do nothing"
    )
    factory.publish("limited", limits=("near",))
    _, handed, waiting = (factory.submit("keyed", concurrency_key="one") for _ in range(3))
    factory.settle(factory.claim("keyed", room=3)[0])
    limited, running = factory.submit("limited"), factory.running("a")
    assert factory.run(waits.note(running, limited))
    return {
        "keyed": [handed, waiting],
        "limited": limited,
        "running": running.job_id,
        "ended": factory.completed("b"),
    }


def run_client(factory: JobFactory, data: dict[str, Any]) -> None:
    factory.conn.execute("select from laneway.jobs_as_text limit 0")
    flow_statements.run_flows(factory)
    factory.run(workers.published_names())
    read_migrations(factory)
    waiting = factory.submit(unique_key="k")
    assert factory.submit(unique_key="k") == waiting
    factory.conn.execute("select laneway.submit('greet', '{\"by\": \"SQL\"}')")
    factory.run(submit_and_wake.submit_and_note(NewJob(id=new_job_id(), job_type="greet")))
    factory.run(submit_and_wake.wake_noted())
    client = Client(None, Settings.load())  # type: ignore[arg-type]
    batch: list[Given] = [
        ("bulk", {}, {"unique_key": "k"}),
        ("bulk", {}, {"delay": 60}),
        ("bulk", {}),
    ]
    for _ in range(2):
        made = asyncio.run(client.submit_many(batch, conn=factory.conn))
    assert [job.duplicate for job in made] == [True, False, False]
    gated: list[Given] = [("costly", {}), ("gated", {}, {"created_by": "me"})]
    made = asyncio.run(client.submit_many(gated, conn=factory.conn))
    assert [job.status for job in made] == ["pending", "awaiting_approval"]
    factory.submit("unheard_of", needs="approval")
    for job in made:
        assert factory.run(jobs.cancel(job.id, "me", None)).found_in == job.status
    factory.run(audit.record("me", "job.cancelled", "job", str(waiting)))
    run_holds(factory)
    factory.run(jobs.get(waiting))
    factory.run(jobs.get_attempts(data["ended"]))
    factory.run(jobs.wait(waiting))
    assert factory.run(waits.note(Claim(0, data["running"], 1), waiting))
    factory.run(sent_events.send("go", "k", "1", workspace="default"))
    factory.run(sent_events.send_all([sent_events.NewEvent("go", "k", "1", "default", None, 60)]))
    assert factory.run(jobs.cancel(waiting, "me", None)).found_in == "approved"
    assert factory.run(jobs.cancel(data["running"], "me", None)).found_in == "running"
    for keyed in data["keyed"]:
        assert factory.run(jobs.cancel(keyed, "me", None)).found_in == "approved"
    assert factory.run(jobs.cancel(data["ended"], "me", None)).found_in == "completed"
    factory.run(notify.wake("wake *"))
