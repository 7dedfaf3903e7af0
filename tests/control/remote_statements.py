"""The statements that a server runs for remote workers, from handshake to disconnect."""

from __future__ import annotations

from uuid import uuid4

from laneway.domain.job_type_policy import TypeRecord
from laneway.store import call_limits, lanes, leases, remote, steps
from laneway.store.leases import MAX_RANK, MIN_RANK, Range
from laneway.store.remote import StreamInfo
from laneway.store.steps import StepResult
from tests.support.job_factory import JobFactory


def run_remote(factory: JobFactory) -> None:
    stream = StreamInfo(
        id=uuid4(),
        stream_id=uuid4(),
        principal_id=uuid4(),
        name="far",
        host="away",
        pid=1,
        code="1",
        job_types=["afar"],
        lanes=None,
        concurrency=3,
    )
    assert factory.run(remote.register(stream)) is False
    factory.run(remote.read_types(["afar"]))
    record = TypeRecord(
        name="afar",
        arguments="null",
        lane=None,
        priority=None,
        max_retries=3,
        timeout_s=None,
        isolation="async",
        stale="heartbeat",
    )
    factory.run(remote.find_ignored([record]))
    factory.submit("afar")
    ranges = [Range("afar", 1, True, MIN_RANK, 0, MAX_RANK)]
    version = factory.run(lanes.read()).version
    claim = leases.claim(stream.id, "default", version, 1, ranges, [1], stream_id=stream.stream_id)
    (job,) = factory.run(claim).assignments
    factory.run(steps.save_many([StepResult(job.claim, "one", "1", 0.1)]))
    assert factory.run(remote.read_steps([job.claim.seq], 1000, 1000)).keys() == {job.claim.seq}
    granted = factory.run(call_limits.acquire_for_remote(job.claim, {"openai": 1}, {}, 0.0))
    assert granted.answer == "granted"
    assert factory.run(call_limits.end_holds()).names == ["openai"]
    assert [one.claim for one in factory.run(remote.read_leases([stream.id]))] == [job.claim]
    attempt = job.claim.job_id, job.claim.attempt
    assert factory.run(remote.find_attempts(stream.id, stream.principal_id, [attempt])).keys() == {
        attempt
    }
    here = [(stream.id, stream.stream_id)]
    assert factory.run(remote.touch(here, [1], [{}], [True]))[0].is_current
    factory.run(remote.stop(here))
