"""Payloads written directly to the table reach their own job as text and affect no other."""

from __future__ import annotations

import pytest

from laneway.domain.filter import JobFilter
from laneway.domain.payload import decode
from laneway.errors import InvalidInput
from laneway.store import jobs
from tests.support.store_client import StoreClient

HOSTILE = {
    "5001 digits": '{"a": 1e5000}',
    "131072 digits": '{"a": 1e131071}',
    "nested 5000": "[" * 5000 + "]" * 5000,
    "a megabyte and more": '"' + "x" * (2 * 1024 * 1024) + '"',
    "a key of a megabyte": '{"' + "k" * (1024 * 1024) + '": 1}',
}


def smuggle(db: StoreClient, payload: str) -> int:
    seq = db.one(
        "insert into laneway.jobs (id, job_type, payload)"
        " values (gen_random_uuid(), 't', %s::jsonb) returning seq",
        payload,
    )
    db.do("insert into laneway.ready (seq, job_type, rank) values (%s, 't', 0)", seq)
    return int(seq)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_payload_is_claimed_as_text_with_other_jobs(db: StoreClient, name: str) -> None:
    before = db.submit(payload={"n": 1})
    hostile = smuggle(db, HOSTILE[name])
    after = db.submit(payload={"n": 2})
    answer = db.claim()
    assert [a.claim.seq for a in answer.assignments] == [before, hostile, after]
    assert [decode(a.payload) for a in answer.assignments if a.claim.seq != hostile] == [
        {"n": 1},
        {"n": 2},
    ]
    bad = answer.assignments[1]
    assert isinstance(bad.payload, str)
    if "megabyte" not in name:
        with pytest.raises(InvalidInput, match=r"^payload"):
            decode(bad.payload)
    db.settle(bad.claim, "giveup", error='{"type": "InvalidInput", "message": "payload"}')
    assert db.row("outcome", hostile)["status"] == "failed"
    assert db.slots_agree()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_payload_spoils_no_list(db: StoreClient, name: str) -> None:
    first = db.submit(payload={"n": 1})
    hostile = smuggle(db, HOSTILE[name])
    last = db.submit(payload={"n": 2})
    page = db.run(jobs.listing(JobFilter(), limit=10))
    assert [job.id for job in page.items] == [db.id_of(s) for s in (last, hostile, first)]
    assert [page.items[0].payload, page.items[2].payload] == [{"n": 2}, {"n": 1}]
    job = db.run(jobs.get(db.id_of(hostile)))
    assert job is not None
    assert job.payload is not None


@pytest.mark.parametrize("text", ['{"a": "\\u0000"}', '{"a": NaN}', '{"a": "\\ud800"}', "{", ""])
def test_unstorable_text_is_refused_with_its_field(db: StoreClient, text: str) -> None:
    from laneway.domain.job import NewJob, new_job_id

    with pytest.raises(InvalidInput, match=r"^payload"):
        db.run(jobs.submit(NewJob(id=new_job_id(), job_type="t", payload=text)))
    assert db.one("select count(*) from laneway.jobs") == 0


@pytest.mark.parametrize(
    "call, field",
    [
        ("laneway.submit('')", "job_type"),
        ("laneway.submit(null)", "job_type"),
        ("laneway.submit(repeat('x', 129))", "job_type"),
        ("laneway.submit(E'a\\nb')", "job_type"),
        ("laneway.submit('t', null)", "payload"),
        ("laneway.submit('t', to_jsonb(repeat('x', 1048576)))", "payload"),
        (
            "laneway.submit('t', (select jsonb_agg('1e131071'::jsonb) from generate_series(1, 9)))",
            "payload",
        ),
        ("laneway.submit('t', unique_key => '')", "unique_key"),
        ("laneway.submit('t', unique_key => repeat('k', 513))", "unique_key"),
        ("laneway.submit('t', workspace => '')", "workspace"),
        ("laneway.submit('t', workspace => null)", "workspace"),
        ("laneway.submit('t', priority => 32768)", "priority"),
        ("laneway.submit('t', max_retries => -1)", "max_retries"),
    ],
)
def test_sql_submit_refuses_with_field_and_rule(db: StoreClient, call: str, field: str) -> None:
    import psycopg

    with pytest.raises(psycopg.Error) as refused:
        db.do(f"select * from {call}")
    assert refused.value.sqlstate == "LW001"
    assert str(refused.value).startswith(f"{field}: ")


def test_sql_submit_runs_in_callers_transaction(db: StoreClient) -> None:
    db.begin()
    db.do("select laneway.submit('t', '{\"a\": 1}', priority => 4, wake => true)")
    db.rollback()
    assert db.claimed() == []
    job_id, status, duplicate = db.one(
        "select job_id, status, duplicate from laneway.submit('polarity', delay => '1 hour')"
    )
    assert (status, duplicate) == ("approved", False)
    job = db.run(jobs.get(job_id))
    assert job is not None
    assert (job.lane, job.priority, job.max_retries) == ("interactive", 10, 3)
    assert db.places(db.seq_of(job_id)) == ["delayed"]
