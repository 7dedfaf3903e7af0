"""Jobs over HTTP: submitted, read, decided and ended with the verbs of control."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from laneway.api.http.job_access import actable
from laneway.domain.approval import Approval
from tests.api.conftest import Ask, People, Principal
from tests.support.job_factory import JobFactory

Acts = Callable[[], list[tuple[Any, ...]]]

RUN_NOW_RULE = "only jobs that are delayed, snoozed, asleep or wait for a retry can run now"
VERBS = [
    ("GET", ""),
    ("GET", "/explain"),
    ("POST", "/cancel"),
    ("POST", "/retry"),
    ("POST", "/run_now"),
    ("DELETE", ""),
]
BAD = [
    (b'{"job_type": "greet", "payload": {"a": "\\u0000"}}', "payload.a"),
    (b'{"job_type": "greet", "payload": {"a": NaN}}', "payload.a"),
    (b'{"job_type": "greet", "payload": {"a": "\\ud800"}}', "payload.a"),
    (b'{"job_type": "greet", "\\ud800": 1}', "body"),
    (b'{"job_type": "greet", "payload": {"a": 1' + b"0" * 400 + b"}}", "payload.a"),
    (b'{"job_type": "greet", "payload": ' + b"1" * 5000 + b"}", "body.payload"),
    (b'{"job_type": "greet", "payload": ' + b"[" * 200_000, "body.payload[0]…"),
    (b'{"job_type": "greet", "priority": "1"}', "body.priority"),
    (b'{"job_type": "greet", "delay": 1, "run_at": "2030-01-01T00:00:00Z"}', "delay"),
    (b'{"job_type": "greet", "run_at": "2030-01-01T00:00:00"}', "body.run_at"),
    (b'{"job_type": "greet", "tags": ["\\u0000"]}', "tags[0]"),
    (b"{", "body"),
]


async def test_location_header_points_to_submitted_job(ask: Ask, people: People) -> None:
    ann = people.new("ann", "submitter")
    made = await ask(ann, "POST", "/jobs", json={"job_type": "greet", "payload": {"name": "Bo"}})
    assert made.status_code == 202, made.text
    job = made.json()
    assert made.headers["location"] == f"/jobs/{job['id']}"
    assert (job["status"], job["created_by"]) == ("approved", "ann")
    read = (await ask(ann, "GET", made.headers["location"])).json()
    assert read["payload"] == {"name": "Bo"}
    assert read["attempts"] == read["decisions"] == []


async def test_submit_leaves_audit_entry_and_duplicate_none(
    ask: Ask, people: People, audit_entries: Acts
) -> None:
    ann = people.new("ann", "submitter")
    body = {"job_type": "greet", "unique_key": "k"}
    first = await ask(ann, "POST", "/jobs", json=body)
    second = await ask(ann, "POST", "/jobs", json=body)
    assert (first.status_code, second.status_code) == (202, 200)
    assert second.json()["duplicate"] is True
    assert second.json()["id"] == first.json()["id"]
    assert audit_entries() == [("ann", "job.submitted", "job", first.json()["id"], "done")]


@pytest.mark.parametrize("is_published", [True, False])
async def test_job_is_unique_for_a_period_over_http(
    ask: Ask, people: People, factory: JobFactory, audit_entries: Acts, is_published: bool
) -> None:
    ann = people.new("ann", "submitter")
    option: dict[str, Any] = {"unique_for": 60, "unique_by": ["n"]}
    if is_published:
        factory.publish(unique_for_s=60, unique_by=("n",))
        option = {}
    body = {"job_type": "greet", "payload": {"n": 1, "m": 1}, **option}
    first = await ask(ann, "POST", "/jobs", json=body)
    assert first.status_code == 202
    (claim,) = factory.claim()
    factory.settle(claim)
    same = {**body, "payload": {"n": 1, "m": 2}}
    again = await ask(ann, "POST", "/jobs", json=same)
    assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])
    assert (again.json()["duplicate"], again.json()["status"]) == (True, "completed")
    batch = await ask(ann, "POST", "/jobs/batch", json={"jobs": [same]})
    assert (batch.status_code, batch.json()["items"][0]["duplicate"]) == (200, True)
    assert audit_entries() == [("ann", "job.submitted", "job", first.json()["id"], "done")]
    other = await ask(ann, "POST", "/jobs", json={**body, "payload": {"n": 2}})
    assert other.status_code == 202


async def test_type_that_becomes_unique_is_unique_at_once(
    ask: Ask, people: People, factory: JobFactory, audit_entries: Acts
) -> None:
    """Also while the server has the earlier settings of the type in its cache."""
    ann = people.new("ann", "submitter")
    factory.publish()
    body = {"job_type": "greet", "payload": {"n": 1}}
    assert (await ask(ann, "POST", "/jobs", json=body)).status_code == 202
    factory.publish(unique_for_s=60)
    first = await ask(ann, "POST", "/jobs", json=body)
    again = await ask(ann, "POST", "/jobs", json=body)
    assert (first.status_code, again.status_code) == (202, 200)
    assert (again.json()["id"], again.json()["duplicate"]) == (first.json()["id"], True)
    free = await ask(ann, "POST", "/jobs", json={**body, "unique_for": 0})
    assert free.status_code == 202
    assert len(audit_entries()) == 3


async def test_key_of_hidden_job_reveals_nothing(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    ann = people.new("ann", "submitter")
    theirs = factory.submit("greet", unique_key="k", created_by="bob")
    body = {"job_type": "greet", "unique_key": "k"}
    one = await ask(ann, "POST", "/jobs", json=body)
    batch = {"jobs": [{"job_type": "greet"}, body]}
    many = await ask(ann, "POST", "/jobs/batch", json=batch)
    keyed = await ask(ann, "POST", "/jobs/batch", json=batch, headers={"Idempotency-Key": "k"})
    for answer in (one, many, keyed):
        assert answer.status_code == 409
        assert str(theirs) not in answer.text
    assert len((await ask(ann, "GET", "/jobs")).json()["items"]) == 0


async def test_internal_fields_cannot_be_submitted(ask: Ask, people: People) -> None:
    ann = people.new("ann", "operator")
    for field in ("id", "status", "attempt", "created_by", "claimed_by", "approved_by", "result"):
        answer = await ask(ann, "POST", "/jobs", json={"job_type": "greet", field: "x"})
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["field"] == f"body.{field}"


async def test_bad_input_names_the_field(ask: Ask, people: People) -> None:
    ann = people.new("ann", "submitter")
    headers = {"Content-Type": "application/json"}
    for body, field in BAD:
        answer = await ask(ann, "POST", "/jobs", content=body, headers=headers)
        assert answer.status_code == 422, answer.text
        found = answer.json()["errors"][0]["field"]
        # A deep path is truncated.
        assert found == field or (field.endswith("…") and found.startswith(field[:-1]))


async def test_arguments_are_checked_as_they_were_published(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    ann = people.new("ann", "submitter")
    factory.publish("greet", '{"type": "object", "properties": {"n": {"type": "integer"}}}')
    answer = await ask(ann, "POST", "/jobs", json={"job_type": "greet", "payload": {"n": "x"}})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "payload.n"


async def test_batch_is_stored_whole_or_not_at_all(
    ask: Ask, people: People, audit_entries: Acts
) -> None:
    ann = people.new("ann", "submitter")
    good = {"job_type": "greet"}
    bad = {"job_type": "greet", "payload": {"a": "\x00"}}
    refused = await ask(ann, "POST", "/jobs/batch", json={"jobs": [good, bad]})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "jobs[1].payload.a"
    assert (await ask(ann, "GET", "/jobs")).json()["items"] == []
    made = await ask(ann, "POST", "/jobs/batch", json={"jobs": [good, good]})
    assert made.status_code == 202
    listed = (await ask(ann, "GET", "/jobs")).json()["items"]
    assert {job["id"] for job in listed} == {job["id"] for job in made.json()["items"]}
    assert {job["created_by"] for job in listed} == {"ann"}
    assert [act[:3] for act in audit_entries()] == [("ann", "job.submitted", "job")]


async def test_pages_of_jobs_in_reach_hold_each_once(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    ann = people.new("ann", "submitter")
    mine = [str(factory.submit("greet", created_by=who)) for who in ("ann", "bob") * 5][::2]
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = (await ask(ann, "GET", "/jobs", params={"limit": 2, **cursor})).json()
        seen += [job["id"] for job in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert seen == mine[::-1]


async def test_lists_contain_only_objects_of_grant(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    role = people.role("reader", "jobs:read")
    lane = people.new("lane", role, scope="all", lanes=["interactive"])
    place = people.new("place", role, workspace="lab")
    factory.conn.execute("update laneway.worker_lanes set max_slots = 9")
    for make in (factory.completed, factory.failed, factory.running, factory.submit):
        for job_type in ("ingestion", "greet"):
            for workspace in ("lab", "default"):
                make(job_type, workspace=workspace)
    for status in (None, "approved", "running", "completed", "failed"):
        params = {"limit": 200} | ({"status": status} if status else {})
        seen = (await ask(lane, "GET", "/jobs", params=params)).json()["items"]
        assert len(seen) == (2 if status else 8)
        assert {job["lane"] for job in seen} == {"interactive"}
        seen = (await ask(place, "GET", "/jobs", params=params)).json()["items"]
        assert len(seen) == (2 if status else 8)
        assert {job["workspace"] for job in seen} == {"lab"}


async def test_long_search_stops_and_goes_on_from_its_cursor(
    ask: Ask, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.store.jobs.SCAN", 1)
    ann = people.new("ann", "operator")
    batch = [{"job_type": "greet", "tags": ["first"] if n == 0 else []} for n in range(60)]
    assert (await ask(ann, "POST", "/jobs/batch", json={"jobs": batch})).status_code == 202
    pages, found = 0, []
    params: dict[str, str] = {"tag": "first"}
    while "cursor" in params or not pages:
        page = (await ask(ann, "GET", "/jobs", params=params)).json()
        found += page["items"]
        pages += 1
        assert (page["looked_back_to"] is None) == (page["next_cursor"] is None)
        params = {"tag": "first", **({"cursor": c} if (c := page["next_cursor"]) else {})}
    assert [job["tags"] for job in found] == [["first"]]
    assert pages == 3


async def test_job_with_many_attempts_is_shown_with_newest_and_pages_hold_all(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    job_id = factory.submit("greet")
    factory.conn.execute(
        "insert into laneway.attempts (seq, attempt, outcome, error)"
        ' select j.seq, g, \'failed\', \'{"type": "E", "message": "secret"}\''
        " from laneway.jobs j, generate_series(1, 120) g where j.id = %s",
        [job_id],
    )
    ann = people.new("ann", "operator")
    whole = (await ask(ann, "GET", f"/jobs/{job_id}")).json()
    assert [one["attempt"] for one in whole["attempts"]] == list(range(71, 121))
    seen: list[int] = []
    params: dict[str, str] = {}
    while True:
        page = (await ask(ann, "GET", f"/jobs/{job_id}/attempts", params=params)).json()
        seen += [one["attempt"] for one in page["items"]]
        assert all("log" in one for one in page["items"])
        if page["next_cursor"] is None:
            break
        params = {"cursor": page["next_cursor"]}
    assert seen == list(range(120, 0, -1))
    viewer = people.new("vic", "viewer")
    answer = await ask(viewer, "GET", f"/jobs/{job_id}/attempts", params={"limit": 1})
    assert (answer.json()["items"][0]["error"]["type"], "secret" in answer.text) == ("E", False)


async def test_misspelt_filter_is_refused(ask: Ask, people: People) -> None:
    eve = people.new("eve", "viewer")
    for params in ({"stauts": "failed"}, {"limit": 201}, {"limit": 0}, {"cursor": "x"}):
        assert (await ask(eve, "GET", "/jobs", params=params)).status_code == 422


async def test_tracebacks_and_logs_are_for_debuggers_and_owners(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    job_id = factory.failed("greet", created_by="ann")
    seen = {}
    for name, role in (("ann", "submitter"), ("ben", "operator"), ("eve", "viewer")):
        who = people.new(name, role)
        one = (await ask(who, "GET", f"/jobs/{job_id}")).json()
        listed = (await ask(who, "GET", "/jobs")).json()["items"][0]
        seen[name] = [
            "traceback" in one["error"],
            "traceback" in listed["error"],
            {"log", "log_lines"} <= one["attempts"][0].keys(),
            "traceback" in one["attempts"][0]["error"],
        ]
    assert seen == {"ann": [True] * 4, "ben": [True] * 4, "eve": [False] * 4}


async def test_every_verb_on_hidden_job_is_not_found(
    ask: Ask, people: People, factory: JobFactory, audit_entries: Acts
) -> None:
    ann = people.new("ann", "submitter")
    theirs, nobodys = factory.submit("greet", created_by="bob"), uuid4()
    for job_id in (theirs, nobodys):
        for method, path in VERBS:
            answer = await ask(ann, method, f"/jobs/{job_id}{path}")
            assert (answer.status_code, answer.json()["detail"]) == (404, f"no job {job_id}")
    tried = ("job.cancelled", "job.retried", "job.made_due", "job.deleted")
    assert audit_entries() == [
        ("ann", action, "job", str(job_id), "refused")
        for job_id in (theirs, nobodys)
        for action in tried
    ], "every try is audited, and none reveals which of them exists"
    ben = people.new("ben", "operator")
    assert (await ask(ben, "POST", f"/jobs/{nobodys}/cancel")).status_code == 404
    assert len(audit_entries()) == 2 * len(tried), "who sees all jobs was not refused anything"


async def test_verb_on_a_job_that_may_only_be_read_is_refused_and_kept(
    ask: Ask, people: People, factory: JobFactory, audit_entries: Acts
) -> None:
    ann = people.new("ann", "viewer")
    people.grant(ann.id, "submitter")
    job_id = factory.submit("greet", created_by="bob")
    answer = await ask(ann, "POST", f"/jobs/{job_id}/cancel")
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert audit_entries() == [("ann", "job.cancelled", "job", str(job_id), "refused")]


async def test_verbs_of_a_jobs_life(
    ask: Ask, people: People, factory: JobFactory, audit_entries: Acts
) -> None:
    ben = people.new("ben", "operator")
    job_id = factory.submit("greet")

    async def status(method: str, verb: str, **more: Any) -> tuple[int, Any]:
        answer = await ask(ben, method, f"/jobs/{job_id}{verb}", **more)
        return answer.status_code, answer.json().get("status") if answer.content else None

    assert await status("POST", "/retry") == (409, 409)
    assert await status("POST", "/cancel", json={"reason": "late"}) == (200, "cancelled")
    assert await status("POST", "/cancel") == (409, 409)
    assert await status("POST", "/retry") == (200, "approved")
    (claim,) = factory.claim()
    assert await status("DELETE", "") == (409, 409)
    assert (await ask(ben, "GET", f"/jobs/{job_id}/explain")).json()["reasons"][0][
        "code"
    ] == "running"
    factory.settle(claim)
    assert await status("DELETE", "") == (204, None)
    assert await status("GET", "") == (404, 404)
    assert [act[1] for act in audit_entries()] == ["job.cancelled", "job.retried", "job.deleted"]
    job_id = factory.submit("greet")
    assert await status("DELETE", "") == (200, "cancelled")


async def test_job_that_waits_for_a_time_runs_now_and_others_are_refused(
    ask: Ask, people: People, factory: JobFactory, audit_entries: Acts
) -> None:
    ben = people.new("ben", "operator")
    later = datetime(2099, 1, 1, tzinfo=UTC)
    delayed = factory.submit("greet", run_at=later)
    key = {"Idempotency-Key": "now"}
    for replayed in (None, "true"):
        answer = await ask(ben, "POST", f"/jobs/{delayed}/run_now", headers=key)
        job = answer.json()
        assert (answer.status_code, job["status"]) == (200, "approved")
        assert datetime.fromisoformat(job["run_at"]) < datetime.now(UTC) + timedelta(minutes=1)
        assert answer.headers.get("idempotent-replayed") == replayed
    assert [act[:2] for act in audit_entries()] == [("ben", "job.made_due")]
    factory.publish("costly", approval=Approval())
    for job_id, state, rule in (
        (delayed, "due already", "explain says what it waits for"),
        (factory.submit("costly", run_at=later), "awaiting_approval", "approve it first"),
        (factory.failed("bad"), "failed", "retry it instead"),
        (factory.running("slow").job_id, "running", RUN_NOW_RULE),
        (factory.completed("done"), "completed", RUN_NOW_RULE),
    ):
        answer = await ask(ben, "POST", f"/jobs/{job_id}/run_now")
        assert (answer.status_code, answer.json()["code"]) == (409, "refused")
        assert f"job {job_id} is {state}: {rule}" in answer.json()["detail"]


async def test_job_is_approved_as_it_was_shown_and_rejected_with_a_reason(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    eve = people.new("eve", "approver")
    factory.publish("costly", approval=Approval())
    first, second = factory.submit("costly"), factory.submit("costly")
    shown = (await ask(eve, "GET", f"/jobs/{first}")).json()
    wrong = await ask(eve, "POST", f"/jobs/{first}/approve", json={"seal": "x" + shown["seal"]})
    assert wrong.status_code == 409
    decision = {"seal": shown["seal"], "comment": "go"}
    done = await ask(eve, "POST", f"/jobs/{first}/approve", json=decision)
    assert (done.status_code, done.json()["approved_by"]) == (200, "eve")
    assert (await ask(eve, "POST", f"/jobs/{second}/reject", json={})).status_code == 422
    gone = await ask(eve, "POST", f"/jobs/{second}/reject", json={"reason": "no"})
    assert gone.json()["status"] == "cancelled"


async def test_explain_names_no_foreign_job(ask: Ask, people: People, factory: JobFactory) -> None:
    ann, ben = people.new("ann", "submitter"), people.new("ben", "operator")
    factory.conn.execute("update laneway.worker_lanes set max_slots = 1 where name = 'interactive'")
    theirs = factory.running("ingestion", created_by="bob").job_id
    mine = factory.submit("ingestion", created_by="ann")
    explained = (await ask(ben, "GET", f"/jobs/{mine}/explain")).text
    assert str(theirs) in explained
    explained = (await ask(ann, "GET", f"/jobs/{mine}/explain")).text
    assert str(theirs) not in explained
    assert "another job" in explained


async def test_submits_keep_to_the_workspaces_and_lanes_of_the_grant(
    ask: Ask, people: People, audit_entries: Acts
) -> None:
    role = people.role("sender", "jobs:submit")
    ann = people.new("ann", role, workspace="lab")
    ben = people.new("ben", role, scope="all", lanes=["interactive"])
    lab = {"job_type": "greet", "workspace": "lab"}
    fast = {"job_type": "ingestion"}
    assert (await ask(ann, "POST", "/jobs", json=lab)).status_code == 202
    assert (await ask(ann, "POST", "/jobs", json=fast)).status_code == 403
    assert (await ask(ben, "POST", "/jobs", json=fast)).status_code == 202
    assert (await ask(ben, "POST", "/jobs/batch", json={"jobs": [fast, lab]})).status_code == 403
    assert [act[4] for act in audit_entries()] == ["done", "refused", "done", "refused"]


async def test_number_python_cannot_hold_spoils_no_list(
    ask: Ask, people: People, conn: psycopg.Connection[Any]
) -> None:
    eve = people.new("eve", "viewer")
    conn.execute("select laneway.submit('greet', '{}')")
    # As an earlier version may have stored it.
    conn.execute("update laneway.jobs set payload = %s", ['{"n": ' + "9" * 400 + '.5, "m": 1}'])
    answer = await ask(eve, "GET", "/jobs")
    assert answer.json()["items"][0]["payload"] == {"n": "Infinity", "m": 1}


async def test_me_lists_permissions_of_caller(ask: Ask, people: People) -> None:
    ann = people.new("ann", "submitter", permissions=["jobs:read", "workers:manage"])
    me = (await ask(ann, "GET", "/me")).json()
    assert (UUID(me["id"]), me["name"], me["csrf"]) == (ann.id, "ann", None)
    own = {"owner": "ann", "workspace": None, "lanes": None}
    assert me["permissions"] == {"jobs:read": [own]}


async def test_page_of_large_jobs_is_shorter_and_none_is_missed(
    ask: Ask, people: People, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("routes.jobs", "http.portions"):
        monkeypatch.setattr(f"laneway.api.{module}.MAX_BYTES", 40_000)
    viewer = people.new("v", "viewer")
    ids = [str(factory.submit()) for _ in range(30)]
    for limit, pages in ((30, [30]), (29, [29, 1]), (25, [25, 5]), (7, [7, 7, 7, 7, 2])):
        found = [page async for page in pages_of(ask, viewer, limit)]
        assert [len(page) for page in found] == pages
        assert [one for page in found for one in page] == ids[::-1]
    ids += [str(factory.submit(payload=json.dumps({"a": "x" * 5000}))) for _ in range(30)]
    found = [page async for page in pages_of(ask, viewer, 200)]
    assert all(5 <= len(page) <= 10 for page in found[:3])
    assert [one for page in found for one in page] == ids[::-1]


async def test_page_is_one_search_and_none_is_missed(
    ask: Ask, people: People, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laneway.store.jobs.SCAN", 1)
    viewer = people.new("v", "viewer")
    ids = [str(factory.submit()) for _ in range(60)]
    found = [page async for page in pages_of(ask, viewer, 200)]
    assert [len(page) for page in found] == [25, 25, 10]
    assert [one for page in found for one in page] == ids[::-1]


async def pages_of(ask: Ask, who: Principal, limit: int) -> AsyncIterator[list[str]]:
    cursor: str | None = None
    while True:
        params = {"limit": limit, **({"cursor": cursor} if cursor else {})}
        page = (await ask(who, "GET", "/jobs", params=params)).json()
        if page["items"]:
            yield [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            return


async def test_job_claimed_meanwhile_is_refused_and_keeps_running(
    ask: Ask,
    people: People,
    factory: JobFactory,
    monkeypatch: pytest.MonkeyPatch,
    audit_entries: Acts,
) -> None:
    olga = people.new("olga", "operator")
    waiting = factory.submit()

    async def claimed_meanwhile(*given: Any) -> Any:
        seen = await actable(*given)
        factory.claim()
        return seen

    monkeypatch.setattr("laneway.api.routes.jobs.actable", claimed_meanwhile)
    answer = await ask(olga, "DELETE", f"/jobs/{waiting}")
    assert (answer.status_code, answer.json()["code"]) == (409, "refused")
    job = (await ask(olga, "GET", f"/jobs/{waiting}")).json()
    assert (job["status"], job["cancel_requested_at"]) == ("running", None)
    assert audit_entries() == []


async def test_job_has_trace_of_its_submit(ask: Ask, people: People, factory: JobFactory) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    vera = people.new("vera", "viewer")
    traced, plain = factory.submit(traceparent=trace), factory.submit()
    seen = [(await ask(vera, "GET", f"/jobs/{each}")).json() for each in (traced, plain)]
    assert [one["traceparent"] for one in seen] == [trace, None]
