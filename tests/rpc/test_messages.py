"""Messages are parsed strictly, and refused with field and rule."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest

from laneway.domain.approval import Analysis
from laneway.domain.claim import Claim
from laneway.domain.payload import PayloadLimits
from laneway.errors import InvalidInput
from laneway.rpc import messages
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc.server.assignment_queue import Beat, OutAssignment
from laneway.rpc.server.handshake import read_handshake
from laneway.store.leases import Verdict
from laneway.store.remote import FinishedStep

CLAIM = Claim(7, uuid4(), 2)
LIMITS = PayloadLimits(max_bytes=1000)
WORKER = str(uuid4())


def verdict(*, is_analysis: bool = False, **outcome: Any) -> Verdict:
    result = pb.Result(ran_ms=1500, **outcome)
    messages.check_results([result])
    return messages.read_result(result, CLAIM, LIMITS, is_analysis=is_analysis)


def handshake(**fields: Any) -> pb.StreamJobsRequest:
    given: dict[str, Any] = {
        "worker_id": WORKER,
        "job_types": [pb.JobType(name="greet")],
        "max_in_flight": 10,
    }
    return pb.StreamJobsRequest(**{**given, **fields})


def test_each_outcome_is_one_verdict() -> None:
    finished = verdict(finish=pb.Finish(result='{"n": 1}'))
    assert finished == Verdict(CLAIM, "finish", '{"n": 1}', None, None, 1.5)
    assert verdict(finish=pb.Finish()).result == "null"
    error = pb.Error(type="KeyError", message="k", traceback="here")
    failed = verdict(fail=pb.Fail(error=error, retry_after_ms=250))
    assert (failed.kind, failed.delay_s) == ("fail", 0.25)
    assert json.loads(failed.error or "") == {
        "type": "KeyError",
        "message": "k",
        "traceback": "here",
    }
    public = json.loads(verdict(fail=pb.Fail(error=pb.Error(is_public=True))).error or "")
    assert public == {"type": "Error", "message": "Error", "public": True}
    assert verdict(fail=pb.Fail(is_final=True)).kind == "giveup"
    assert verdict(fail=pb.Fail()).delay_s is None
    assert verdict(snooze=pb.Snooze(delay_ms=2000)).delay_s == 2.0
    assert verdict(release=pb.Release()).kind == "release"
    cancelled = verdict(cancel=pb.Cancel(reason="enough", result="[1]"))
    assert (cancelled.kind, cancelled.result) == ("cancel", "[1]")
    assert json.loads(cancelled.error or "")["message"] == "enough"
    assert verdict(cancel=pb.Cancel()).error is None


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "NaN",
        '"\\u0000"',
        '"\\ud800"',
        "[" * 100 + "]" * 100,
        "9" * 400,
        '"' + "x" * 1000 + '"',
    ],
)
def test_result_that_cannot_be_stored_is_a_failure_of_its_job(text: str) -> None:
    parsed = verdict(finish=pb.Finish(result=text))
    assert parsed.kind == "giveup"
    assert json.loads(parsed.error or "")["type"] == "InvalidResult"
    assert json.loads(parsed.error or "")["message"].startswith("result")
    # Cancelled is cancelled, whatever it had by then.
    assert verdict(cancel=pb.Cancel(result=text)).kind == "cancel"


@pytest.mark.parametrize("text", ["1e-9999", "0." + "1" * 900, "1E5", "[123456789012345678901]"])
def test_numbers_that_jsonb_would_write_out_are_written_as_python_reads_them(text: str) -> None:
    parsed = verdict(finish=pb.Finish(result=text))
    assert parsed.kind == "finish"
    assert len(parsed.result or "") < 40
    assert json.loads(parsed.result or "") == json.loads(text)


def test_result_of_an_analysis_is_an_analysis() -> None:
    analysis = Analysis(plan={"steps": 2}, cost=3, currency="USD", warnings=["slow"]).to_dict()
    parsed = verdict(is_analysis=True, finish=pb.Finish(result=json.dumps(analysis)))
    assert parsed.kind == "analyzed"
    assert json.loads(parsed.result or "") == analysis
    tokens = verdict(is_analysis=True, finish=pb.Finish(result='{"cost": {"tokens": 5}}'))
    assert json.loads(tokens.result or "")["cost"] == {"tokens": 5}
    for text in ("[]", '{"price": 1}', '{"cost": 5}', '{"cost": {"amount": 1}}', "null"):
        assert verdict(is_analysis=True, finish=pb.Finish(result=text)).kind == "giveup"


@pytest.mark.parametrize(
    "result, place",
    [
        (pb.Result(), "results[0].outcome"),
        (pb.Result(ran_ms=-1, release=pb.Release()), "results[0].ran_ms"),
        (pb.Result(ran_ms=2**62, release=pb.Release()), "results[0].ran_ms"),
        (pb.Result(snooze=pb.Snooze(delay_ms=-1)), "results[0].snooze.delay_ms"),
        (pb.Result(snooze=pb.Snooze(delay_ms=2**62)), "results[0].snooze.delay_ms"),
        (pb.Result(fail=pb.Fail(retry_after_ms=-5)), "results[0].fail.retry_after_ms"),
    ],
)
def test_invalid_result_is_refused_with_its_field(result: pb.Result, place: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        messages.check_results([result])
    assert refused.value.field == place


def test_call_carries_only_so_much() -> None:
    with pytest.raises(InvalidInput, match="results"):
        messages.check_results([pb.Result(release=pb.Release())] * (messages.MAX_RESULTS + 1))
    with pytest.raises(InvalidInput, match="updates"):
        messages.check_updates([pb.Update()] * (messages.MAX_UPDATES + 1))
    many = pb.Update(lines=[pb.LogLine(number=1)] * (messages.MAX_LINES + 1))
    with pytest.raises(InvalidInput, match="lines"):
        messages.check_updates([many])


def test_update_contains_only_set_fields() -> None:
    update = pb.Update(done=3, total=0, checkpoint="[1]")
    report, lines, steps = messages.read_update(update, CLAIM, "u", LIMITS)
    assert report is not None
    assert report[1:] == (None, 3.0, 0.0, None, "[1]")
    assert (lines, steps) == ([], [])
    only_lines = pb.Update(lines=[pb.LogLine(number=1, level="info", message="a\0b", age_ms=500)])
    report, lines, _ = messages.read_update(only_lines, CLAIM, "u", LIMITS)
    assert report is None, "a log line does not count as progress"
    assert lines[0][1:] == (1, "info", "a\\u0000b", 0.5)
    silent, *_ = messages.read_update(pb.Update(), CLAIM, "u", LIMITS)
    assert silent is not None, "an empty update counts as progress"


@pytest.mark.parametrize(
    "update, place",
    [
        (pb.Update(done=float("nan")), "u.done"),
        (pb.Update(total=float("inf")), "u.total"),
        (pb.Update(checkpoint="{"), "u.checkpoint"),
        (pb.Update(checkpoint='"' + "x" * 1000 + '"'), "u.checkpoint"),
        (pb.Update(lines=[pb.LogLine(level="info")]), "u.lines[0].number"),
        (pb.Update(lines=[pb.LogLine(number=1, level="loud")]), "u.lines[0].level"),
        (pb.Update(lines=[pb.LogLine(number=1, level="info", age_ms=-1)]), "u.lines[0].age_ms"),
        (pb.Update(steps=[pb.Step(result="1")]), "u.steps[0].name"),
        (pb.Update(steps=[pb.Step(name="n" * 201)]), "u.steps[0].name"),
        (pb.Update(steps=[pb.Step(name="n", result="nope")]), "u.steps[0].result"),
        (pb.Update(steps=[pb.Step(name="n", took_ms=-1)]), "u.steps[0].took_ms"),
    ],
)
def test_update_is_refused_by_place_and_rule(update: pb.Update, place: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        messages.read_update(update, CLAIM, "u", LIMITS)
    assert refused.value.field == place


def test_assignment_travels_whole() -> None:
    one = OutAssignment(
        id=str(CLAIM.job_id),
        claim=CLAIM,
        job_type="greet",
        payload='{"a": 1}',
        checkpoint=None,
        steps=(("charge", "5", 0.25),),  # type: ignore[arg-type]
        lease_ms=30_000,
        lease_left_ms=29_000,
        timeout_ms=0,
        traceparent=None,
        lane="default",
        retries=1,
        is_analysis=False,
        max_retries=0,
        tags=("a", "b"),
        created_by="ann",
    )
    (sent,) = pb.StreamJobsResponse.FromString(messages.write_batch([one])).assignments
    assert (sent.job_id, sent.attempt, sent.payload) == (one.id, 2, '{"a": 1}')
    assert not sent.HasField("checkpoint")
    assert (sent.steps[0].name, sent.steps[0].took_ms) == ("charge", 250)
    received = messages.read_assignment(CLAIM, sent.job_type, sent, 3)
    assert (received.retries, received.max_retries) == (1, 0)
    assert (received.tags, received.created_by) == (("a", "b"), "ann")
    assert pb.StreamJobsResponse.FromString(messages.write_batch(Beat())).beat


SHARED: dict[str, Any] = {
    "job_type": "greet",
    "checkpoint": None,
    "steps": (),
    "lease_ms": 30_000,
    "lease_left_ms": 29_999,
    "timeout_ms": 0,
    "traceparent": None,
    "lane": "default",
    "retries": 0,
    "is_analysis": False,
    "max_retries": 3,
    "tags": (),
    "created_by": None,
}


def test_each_assignment_of_a_message_has_its_own_fields() -> None:
    others: list[dict[str, Any]] = [
        {},
        {"payload": json.dumps("é" * 100)},
        {"payload": json.dumps("x" * 70_000)},
        {"checkpoint": "{}"},
        {"checkpoint": ""},
        {"steps": (FinishedStep("a", "1", None),)},
        {"job_type": "other", "lane": "far", "timeout_ms": 5},
        {"retries": 2, "max_retries": 0, "is_analysis": True, "is_ahead": True},
        {"tags": ("t",), "created_by": "ann", "traceparent": "00-1-2-3"},
        {},
    ]
    batch = []
    for n, other in enumerate(others):
        claim = Claim(n, uuid4(), 1 + 200 * n)
        fields = {"payload": "{}", **SHARED, **other}
        batch.append(OutAssignment(id=str(claim.job_id), claim=claim, **fields))
    sent = pb.StreamJobsResponse.FromString(messages.write_batch(batch)).assignments
    for one, given in zip(sent, batch, strict=True):
        wanted = {**given._asdict(), "job_id": given.id, "attempt": given.claim.attempt}
        for name in ("id", "claim", "steps", "checkpoint"):
            del wanted[name]
        found = {name: getattr(one, name) or wanted[name] for name in wanted}
        assert {**found, "tags": tuple(one.tags)} == wanted
        assert (one.checkpoint if one.HasField("checkpoint") else None) == given.checkpoint
        assert [(step.name, step.result) for step in one.steps] == [x[:2] for x in given.steps]
        assert one.can_wait


def test_assignment_of_an_older_server_has_the_handlers_retries() -> None:
    received = messages.read_assignment(CLAIM, "greet", pb.Assignment(payload="{}"), 5)
    assert (received.max_retries, received.tags, received.created_by) == (5, (), None)


def declaring(number: int, text: str = "", **declaration: Any) -> pb.JobType:
    return pb.JobType(name=f"t{number}", declaration=text or json.dumps(declaration))


@pytest.mark.parametrize(
    "fields, place",
    [
        ({"worker_id": "me"}, "worker_id"),
        ({"worker_id": WORKER.replace("-", "")}, "worker_id"),
        ({"job_types": []}, "job_types"),
        ({"job_types": [pb.JobType(name="a")] * 2}, "job_types"),
        ({"job_types": [pb.JobType(name="\x01greet")]}, "job_types[0].name"),
        ({"job_types": [pb.JobType(name="laneway.webhook")]}, "job_types[0].name"),
        ({"job_types": [pb.JobType(name="a", isolation=9)]}, "job_types[0].isolation"),  # type: ignore[arg-type]
        ({"job_types": [declaring(i, "x" * 600_000) for i in range(2)]}, "job_types"),
        ({"job_types": [declaring(i, lane=f"l{i}") for i in range(101)]}, "lanes"),
        ({"job_types": [declaring(i, limits=[f"a{i}", "b"]) for i in range(100)]}, "limits"),
        ({"code": "c" * 2**21}, "request"),
        ({"max_in_flight": -1}, "max_in_flight"),
        ({"max_in_flight": 10_001}, "max_in_flight"),
        ({"max_threads": -1}, "max_threads"),
        ({"holds": [pb.Claim(job_id="x")]}, "holds[0].job_id"),
        ({"name": "a\nb"}, "name"),
        ({"host": "h" * 257}, "host"),
        ({"pid": -1}, "pid"),
        ({"memory_bytes": -1}, "memory_bytes"),
    ],
)
def test_handshake_is_refused_by_field_and_rule(fields: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_handshake(handshake(**fields), LIMITS)
    assert refused.value.field == place


def test_handshake_names_the_worker() -> None:
    came = read_handshake(
        handshake(
            job_types=[
                pb.JobType(name="a", isolation=pb.ISOLATION_THREAD, has_analysis=True),
                pb.JobType(name="b", declaration='{"lane": "fast", "timeout_s": 5}'),
            ],
            holds=[pb.Claim(job_id=WORKER, attempt=3)],
        ),
        LIMITS,
    )
    first, second = came.types
    assert (first.isolation, first.has_analysis, first.record) == ("thread", True, None)
    assert second.record is not None
    assert (second.record.lane, second.record.timeout_s) == ("fast", 5.0)
    assert len(came.holds) == 1
    assert came.name == WORKER, "who has no name is called by its id"
