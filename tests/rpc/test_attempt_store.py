"""Writes of running jobs over gRPC: every outcome, every answer, every failure."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import uuid4

import grpc
import pytest

from laneway.domain.claim import Claim
from laneway.errors import DatabaseUnavailable, InvalidInput, Refused
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc.worker.attempt_store import HeldAttempt, RemoteAttemptStore
from laneway.rpc.worker.connection import ReplicaConnection
from laneway.store.call_limits import LimitGrant
from laneway.store.leases import LogEntry, Report, Verdict, WriteResult
from laneway.store.steps import StepWrite
from tests.rpc.scripted_server import TOKEN, ScriptedServer

ERROR = json.dumps({"type": "ValueError", "message": "no", "traceback": "line 1"})


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer() as server:
        yield server


@pytest.fixture
async def ledger(server: ScriptedServer) -> AsyncIterator[RemoteAttemptStore]:
    connection = ReplicaConnection(server.link)
    yield RemoteAttemptStore(connection, str(uuid4()))
    await connection.close()


@pytest.fixture
def claims(ledger: RemoteAttemptStore) -> Iterator[Claim]:
    """Running, one after the other, with two of three retries spent."""

    def all_of_them() -> Iterator[Claim]:
        for seq in range(1, 10_000):
            claim = Claim(seq, uuid4(), 3)
            ledger.take(HeldAttempt(claim, str(claim.job_id), 2, 3, {"one": "1"}))
            yield claim

    return all_of_them()


# -- ends ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "verdict, message, answer",
    [
        ({"kind": "finish", "result": '{"a": 1}'}, {"finish": {"result": '{"a": 1}'}}, None),
        ({"kind": "finish", "result": "null"}, {"finish": {"result": "null"}}, None),
        (
            {"kind": "analyzed", "result": "{}"},
            {"finish": {"result": "{}"}},
            ("accepted", "approved"),
        ),
        (
            {"kind": "fail", "error": ERROR},
            {"fail": {"error": json.loads(ERROR)}},
            ("accepted", "approved"),
        ),
        (
            {"kind": "fail", "error": ERROR, "delay_s": 0.0},
            {"fail": {"error": json.loads(ERROR), "retryAfterMs": "0"}},
            ("accepted", "approved"),
        ),
        (
            {"kind": "giveup", "error": ERROR},
            {"fail": {"error": json.loads(ERROR), "isFinal": True}},
            ("accepted", "failed"),
        ),
        (
            {"kind": "snooze", "delay_s": 1.5},
            {"snooze": {"delayMs": "1500"}},
            ("accepted", "approved"),
        ),
        (
            {"kind": "cancel", "error": json.dumps({"type": "Cancel", "message": "enough"})},
            {"cancel": {"reason": "enough"}},
            ("accepted", "cancelled"),
        ),
        ({"kind": "cancel", "result": "1"}, {"cancel": {"result": "1"}}, ("accepted", "cancelled")),
        ({"kind": "release"}, {"release": {}}, ("accepted", "approved")),
    ],
)
async def test_every_outcome_is_encoded_as_in_protocol(
    server: ScriptedServer,
    ledger: RemoteAttemptStore,
    claims: Iterator[Claim],
    verdict: dict[str, Any],
    message: dict[str, Any],
    answer: tuple[str, str] | None,
) -> None:
    from google.protobuf.json_format import MessageToDict

    claim = next(claims)
    answers = await ledger.settle([Verdict(claim, ran_s=0.25, **verdict)])
    (result,) = server.results.values()
    sent = MessageToDict(result)
    assert sent.pop("claim") == {"jobId": str(claim.job_id), "attempt": 3}
    assert sent.pop("ranMs") == "250"
    assert sent == message
    assert answers == ([] if answer is None else [WriteResult(claim.seq, 3, *answer)])


async def test_failure_after_last_retry_is_reported_as_final(
    server: ScriptedServer, ledger: RemoteAttemptStore, claims: Iterator[Claim]
) -> None:
    claim = Claim(10_001, uuid4(), 4)
    ledger.take(HeldAttempt(claim, str(claim.job_id), 3, 3, {}))
    failed = [Verdict(claim, "fail", error=ERROR)]
    assert await ledger.settle(failed) == [WriteResult(claim.seq, 4, "accepted", "failed")]
    server.statuses = ["approved"]
    # A server that says what has become of it knows better.
    assert await ledger.settle(failed) == [WriteResult(claim.seq, 4, "accepted", "approved")]


@pytest.mark.parametrize(
    "code, answer, status",
    [
        (pb.ANSWER_FENCED, "fenced", None),
        (pb.ANSWER_CANCEL_REQUESTED, "cancel_requested", "cancelled"),
        (pb.ANSWER_UNSPECIFIED, "busy", None),
    ],
)
async def test_results_other_than_accepted_are_returned(
    server: ScriptedServer,
    ledger: RemoteAttemptStore,
    claims: Iterator[Claim],
    code: pb.Answer,
    answer: str,
    status: str | None,
) -> None:
    first, second = next(claims), next(claims)
    server.answer = lambda one: code if one.job_id == str(second.job_id) else pb.ANSWER_ACCEPTED
    finished = [Verdict(first, "finish", "1"), Verdict(second, "finish", "2")]
    assert await ledger.settle(finished) == [WriteResult(second.seq, 3, answer, status)]


async def test_call_carries_no_more_than_a_server_takes(
    server: ScriptedServer, ledger: RemoteAttemptStore, claims: Iterator[Claim]
) -> None:
    # Characters of three bytes: what counts is what travels.
    large = json.dumps("…" * 300_000, ensure_ascii=False)
    many = [Verdict(next(claims), "finish", large) for _ in range(6)]
    many += [Verdict(next(claims), "finish", "1") for _ in range(1500)]
    assert await ledger.settle(many) == []
    requests = server.of(pb.ReportResultRequest)
    assert [len(one.results) for one in requests] == [3, 3 + 997, 503]
    assert all(one.ByteSize() < 4 * 1024 * 1024 for one in requests)


# -- trouble ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    ["UNAVAILABLE", "DEADLINE_EXCEEDED", "ABORTED", "INTERNAL", "UNKNOWN", "RESOURCE_EXHAUSTED",
     "UNAUTHENTICATED", "PERMISSION_DENIED", "CANCELLED", "UNIMPLEMENTED"],
)  # fmt: skip
async def test_transient_failures_must_be_repeated(
    server: ScriptedServer, ledger: RemoteAttemptStore, claims: Iterator[Claim], code: str
) -> None:
    server.refusals["ReportResult"] = grpc.StatusCode[code], "not now"
    with pytest.raises(DatabaseUnavailable) as raised:
        await ledger.settle([Verdict(next(claims), "finish", "1")])
    assert type(raised.value) is DatabaseUnavailable
    assert TOKEN not in str(raised.value)


async def test_server_that_is_not_there_is_a_database_that_is_not_there(
    server: ScriptedServer, ledger: RemoteAttemptStore, claims: Iterator[Claim]
) -> None:
    await server.stop()
    with pytest.raises(DatabaseUnavailable, match=server.address):
        await ledger.settle([Verdict(next(claims), "finish", "1")])
    await server.start()


async def test_bad_input_is_named_by_field_and_rule(
    server: ScriptedServer, ledger: RemoteAttemptStore, claims: Iterator[Claim]
) -> None:
    server.refusals["AcquireLimits"] = grpc.StatusCode.INVALID_ARGUMENT, "limit: there is no 'x'"
    with pytest.raises(InvalidInput) as raised:
        await ledger.acquire(next(claims), {"x": 1}, {})
    assert (raised.value.field, raised.value.rule) == ("limit", "there is no 'x'")
    server.refusals["AcquireLimits"] = grpc.StatusCode.FAILED_PRECONDITION, "held already"
    with pytest.raises(Refused, match="held already"):
        await ledger.acquire(next(claims), {"x": 1}, {})


# -- progress, steps, limits ----------------------------------------------------------------------


async def test_news_of_one_attempt_go_in_one_update(
    server: ScriptedServer, ledger: RemoteAttemptStore, claims: Iterator[Claim]
) -> None:
    first, second = next(claims), next(claims)
    fenced = str(second.job_id)
    server.answer = lambda one: pb.ANSWER_FENCED if one.job_id == fenced else pb.ANSWER_ACCEPTED
    answers = await ledger.report(
        [Report(first, done=1.0, total=2.0, message="half"), Report(second, checkpoint="[1]")],
        [LogEntry(first, 1, "info", "a", 0.5), LogEntry(first, 2, "error", "b", 0.0)],
    )
    assert answers == [WriteResult(second.seq, 3, "fenced")]
    (request,) = server.of(pb.ReportProgressRequest)
    one, other = request.updates
    assert (one.done, one.total, one.message) == (1.0, 2.0, "half")
    assert not one.HasField("stage")
    assert not one.HasField("checkpoint")
    assert [(n.number, n.level, n.message, n.age_ms) for n in one.lines] == [
        (1, "info", "a", 500),
        (2, "error", "b", 0),
    ]
    assert other.checkpoint == "[1]"
    assert not other.HasField("done")


async def test_first_result_of_a_step_counts(
    server: ScriptedServer, ledger: RemoteAttemptStore, claims: Iterator[Claim]
) -> None:
    claim = next(claims)
    assert await ledger.read_steps(claim) == {"one": "1"}
    assert await ledger.keep_step(claim, "two", "2", 0.1) == StepWrite("kept", "2")
    assert await ledger.keep_step(claim, "two", "3", 0.1) == StepWrite("kept", "2")
    server.answer = lambda one: pb.ANSWER_FENCED
    assert await ledger.keep_step(claim, "two", "3", 0.1) == StepWrite("fenced", None)


@pytest.mark.parametrize(
    "response, grant",
    [
        ({"answer": pb.ANSWER_ACCEPTED}, LimitGrant("granted", None)),
        ({"answer": pb.ANSWER_ACCEPTED, "is_full": True}, LimitGrant("full", None)),
        ({"answer": pb.ANSWER_ACCEPTED, "is_full": True, "wait_ms": 250}, LimitGrant("full", 0.25)),
        ({"answer": pb.ANSWER_FENCED}, LimitGrant("fenced", None)),
        ({"answer": pb.ANSWER_CANCEL_REQUESTED}, LimitGrant("cancel_requested", None)),
        ({"answer": pb.ANSWER_UNSPECIFIED}, LimitGrant("busy", None)),
    ],
)
async def test_limit_is_granted_full_or_refused(
    server: ScriptedServer,
    ledger: RemoteAttemptStore,
    claims: Iterator[Claim],
    response: dict[str, Any],
    grant: LimitGrant,
) -> None:
    server.limits = pb.AcquireLimitsResponse(**response)
    claim = next(claims)
    assert await ledger.acquire(claim, {"openai": 2}, {"openai": 1}) == grant
    (request,) = server.of(pb.AcquireLimitsRequest)
    assert (dict(request.wants), dict(request.inside)) == ({"openai": 2}, {"openai": 1})
    assert await ledger.release(claim, {"openai": 1}) == "given"
