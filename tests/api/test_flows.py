"""Flows over HTTP: submit, list, show, cancel, retry and stream."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import psycopg
import pytest
from fastapi import FastAPI

from tests.api.conftest import Ask, People
from tests.api.streaming import reading
from tests.support.job_factory import JobFactory

CHORD = {
    "name": "nightly",
    "tags": ["night"],
    "jobs": [
        # Given before its parents.
        {"job_type": "join", "name": "join", "after": ["page 0", "page 1"]},
        {"job_type": "greet", "name": "page 0", "payload": {"secret": "s3cret"}},
        {"job_type": "greet", "name": "page 1", "priority": 3},
    ],
}


def rules(answer: Any) -> list[str]:
    assert answer.status_code == 422, answer.text
    return [f"{each['field']}: {each['rule']}" for each in answer.json()["errors"]]


async def test_flow_is_submitted_and_shown(ask: Ask, people: People) -> None:
    ann = people.new("ann", "submitter", scope="own")
    made = await ask(ann, "POST", "/flows", json=CHORD)
    assert made.status_code == 202, made.text
    flow = made.json()
    assert made.headers["location"] == f"/flows/{flow['id']}"
    assert [job["status"] for job in flow["jobs"]] == ["waiting", "approved", "approved"]
    assert (flow["created_by"], flow["counts"]["jobs"]) == ("ann", 3)
    graph = (await ask(ann, "GET", f"/flows/{flow['id']}")).json()
    by_name = {job["name"]: job for job in graph["jobs"]}
    pages = [by_name["page 0"]["id"], by_name["page 1"]["id"]]
    assert by_name["join"]["after"] == pages
    assert by_name["join"]["after_failure"] == "cancel"
    assert graph["next_cursor"] is None
    job = (await ask(ann, "GET", f"/jobs/{by_name['join']['id']}")).json()
    assert (job["flow"], job["waits_for"]["missing"]) == (flow["id"], 2)
    assert set(job["waits_for"]["jobs"]) == set(pages)
    (listed,) = (await ask(ann, "GET", "/flows?status=running&tag=night")).json()["items"]
    assert listed == {key: value for key, value in flow.items() if key != "jobs"}


async def test_job_shows_the_ids_of_jobs_around_it(
    ask: Ask, people: People, conn: psycopg.Connection[Any]
) -> None:
    ann = people.new("ann", "submitter", scope="own")
    made = (await ask(ann, "POST", "/flows", json=CHORD)).json()
    graph = (await ask(ann, "GET", f"/flows/{made['id']}")).json()
    ids = {job["name"]: job["id"] for job in graph["jobs"]}
    fields = ("after", "after_failure", "owner", "followers")

    async def around(name: str) -> list[Any]:
        job = (await ask(ann, "GET", f"/jobs/{ids[name]}")).json()
        return [job[field] for field in fields]

    pages = [ids["page 0"], ids["page 1"]]
    assert await around("join") == [pages, "cancel", None, []]
    assert await around("page 0") == [[], None, None, [ids["join"]]]
    # Also when the edge is satisfied.
    conn.execute("delete from laneway.open_edges")
    assert await around("page 1") == [[], None, None, [ids["join"]]]


async def test_job_shows_a_parent_out_of_reach_by_its_id_only(
    ask: Ask, people: People, conn: psycopg.Connection[Any]
) -> None:
    submit = "select job_id from laneway.submit('greet', %s::jsonb, created_by => %s{})"
    ((parent,),) = conn.execute(submit.format(""), ['{"secret": "s3cret"}', "ben"]).fetchall()
    after = submit.format(", after => array[%s]::uuid[]")
    ((child,),) = conn.execute(after, ["{}", "ann", parent]).fetchall()
    ann = people.new("ann", "submitter", scope="own")
    seen = await ask(ann, "GET", f"/jobs/{child}")
    assert (seen.status_code, seen.json()["after"]) == (200, [str(parent)])
    assert "s3cret" not in seen.text
    assert (await ask(ann, "GET", f"/jobs/{parent}")).status_code == 404


async def test_graph_never_shows_payloads(ask: Ask, people: People) -> None:
    ann = people.new("ann", "submitter", scope="own")
    flow = (await ask(ann, "POST", "/flows", json=CHORD)).json()
    viewer = people.new("viewer", "viewer")
    assert "s3cret" not in (await ask(viewer, "GET", f"/flows/{flow['id']}")).text


async def test_graph_is_read_page_by_page(ask: Ask, people: People) -> None:
    olga = people.new("olga", "operator")
    jobs = [{"job_type": "greet"} for _ in range(5)]
    flow = (await ask(olga, "POST", "/flows", json={"name": "f", "jobs": jobs})).json()
    found, cursor = [], ""
    while True:
        page = (await ask(olga, "GET", f"/flows/{flow['id']}?limit=2{cursor}")).json()
        found += [job["id"] for job in page["jobs"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert found == [job["id"] for job in flow["jobs"]]


async def test_flow_is_cancelled_and_retried(ask: Ask, people: People) -> None:
    olga = people.new("olga", "operator")
    flow = (await ask(olga, "POST", "/flows", json=CHORD)).json()
    path = f"/flows/{flow['id']}"
    done = await ask(olga, "POST", f"{path}/cancel", json={"reason": "not today"})
    assert (done.status_code, done.json()["changed"]) == (200, 3), done.text
    assert done.json()["status"] == "cancelled"
    again = await ask(olga, "POST", f"{path}/retry")
    assert (again.json()["changed"], again.json()["status"]) == (3, "running")
    jobs = (await ask(olga, "GET", f"{path}")).json()["jobs"]
    assert sorted(job["status"] for job in jobs) == ["approved", "approved", "waiting"]


async def test_retry_of_a_flow_leaves_sub_jobs_to_their_handler(
    ask: Ask, people: People, conn: psycopg.Connection[Any]
) -> None:
    # Retried job by job, because of the bounds of the grant.
    ann = people.new("ann", "submitter", scope="own")
    flow = (await ask(ann, "POST", "/flows", json=CHORD)).json()
    ids = {
        job["name"]: job["id"]
        for job in (await ask(ann, "GET", f"/flows/{flow['id']}")).json()["jobs"]
    }
    conn.execute(
        "update laneway.links l set owner_wait = 'w',"
        " owner = (select seq from laneway.jobs where id = %s)"
        " from laneway.jobs j where j.seq = l.seq and j.id = %s",
        [ids["page 0"], ids["page 1"]],
    )
    await ask(ann, "POST", f"/jobs/{ids['page 1']}/cancel")
    again = await ask(ann, "POST", f"/flows/{flow['id']}/retry")
    assert (again.status_code, again.json()["changed"]) == (200, 0), again.text
    jobs = (await ask(ann, "GET", f"/flows/{flow['id']}")).json()["jobs"]
    assert {job["name"]: job["status"] for job in jobs}["page 1"] == "cancelled"


async def test_repeated_request_submits_one_flow(ask: Ask, people: People) -> None:
    ann = people.new("ann", "submitter", scope="own")
    key = {"Idempotency-Key": "once"}
    first = await ask(ann, "POST", "/flows", json=CHORD, headers=key)
    second = await ask(ann, "POST", "/flows", json=CHORD, headers=key)
    assert first.json() == second.json()
    assert len((await ask(ann, "GET", "/flows")).json()["items"]) == 1


@pytest.mark.parametrize(
    "jobs, rule",
    [
        ([], "body.jobs: "),
        ([{"job_type": "a", "name": "x", "after": ["x"]}], "jobs[0].after[0]: a job cannot come"),
        ([{"job_type": "a", "after": ["nope"]}], "jobs[0].after[0]: 'nope' is neither"),
        ([{"job_type": "a", "name": "x"}] * 2, "jobs[1].name: jobs[0] has the name"),
        (
            [{"job_type": "a", "name": "x", "after": ["y"]},
             {"job_type": "a", "name": "y", "after": ["x"]}],
            "jobs: come after each other in a circle: x after y after x",
        ),
        ([{"job_type": "a", "after_failure": "maybe"}], "body.jobs.0.after_failure"),
        ([{"job_type": "a", "workspace": "other"}], "body.jobs.0.workspace"),
        ([{"job_type": "a", "priority": 101}], "jobs[0].priority: at most 100 by your grants"),
    ],
)  # fmt: skip
async def test_wrong_flow_is_refused(
    ask: Ask, people: People, conn: psycopg.Connection[Any], jobs: Any, rule: str
) -> None:
    ann = people.new("ann", "submitter", scope="own")
    answer = await ask(ann, "POST", "/flows", json={"name": "f", "jobs": jobs})
    assert rules(answer)[0].startswith(rule)
    assert conn.execute("select count(*) from laneway.flows").fetchone() == (0,)


async def test_too_many_edges_are_refused(ask: Ask, people: People) -> None:
    olga = people.new("olga", "operator")
    names = [f"p{i}" for i in range(400)]
    jobs: list[dict[str, Any]] = [{"job_type": "a", "name": name} for name in names]
    jobs += [{"job_type": "b", "after": names} for _ in range(251)]
    answer = await ask(olga, "POST", "/flows", json={"name": "dense", "jobs": jobs})
    (rule,) = rules(answer)
    assert rule.startswith("jobs: a flow has at most 100000 edges, not 100400: put a job between")


async def test_large_flow_is_submitted_in_one_request(ask: Ask, people: People) -> None:
    olga = people.new("olga", "operator")
    names = [f"page {i}" for i in range(2500)]
    jobs: list[dict[str, Any]] = [{"job_type": "page", "name": name} for name in names]
    jobs.append({"job_type": "join", "after": names})
    answer = await ask(olga, "POST", "/flows", json={"name": "wide", "jobs": jobs})
    assert answer.status_code == 202, answer.text
    assert answer.json()["counts"]["jobs"] == 2501
    many = [{"job_type": "page"}] * 10_001
    answer = await ask(olga, "POST", "/flows", json={"name": "wider", "jobs": many})
    assert rules(answer)[0].startswith("jobs")


async def test_parents_out_of_reach_look_like_unknown_ones(
    ask: Ask, people: People, factory: JobFactory
) -> None:
    ann = people.new("ann", "submitter", scope="own")
    hidden, unknown = factory.submit(created_by="ben"), uuid4()
    for parent in (hidden, unknown):
        expected = [f"after: no job {parent}"]
        body = {"job_type": "greet", "after": [str(parent)]}
        assert rules(await ask(ann, "POST", "/jobs", json=body)) == expected
        assert rules(await ask(ann, "POST", "/jobs/batch", json={"jobs": [body]})) == expected
        assert (
            rules(await ask(ann, "POST", "/flows", json={"name": "f", "jobs": [body]})) == expected
        )


async def test_job_comes_after_ones_own_job(ask: Ask, people: People) -> None:
    ann = people.new("ann", "submitter", scope="own")
    first = (await ask(ann, "POST", "/jobs", json={"job_type": "greet"})).json()
    body = {"job_type": "greet", "after": [first["id"]], "after_failure": "hold"}
    second = (await ask(ann, "POST", "/jobs", json=body)).json()
    assert (second["status"], second["waits_for"]["jobs"]) == ("waiting", [first["id"]])
    waiting = (await ask(ann, "GET", "/jobs?status=waiting")).json()["items"]
    assert [job["id"] for job in waiting] == [second["id"]]


async def test_jobs_are_filtered_by_flow(ask: Ask, people: People) -> None:
    olga = people.new("olga", "operator")
    flow = (await ask(olga, "POST", "/flows", json=CHORD)).json()
    await ask(olga, "POST", "/jobs", json={"job_type": "greet"})
    mine = {job["id"] for job in flow["jobs"]}
    found = (await ask(olga, "GET", f"/jobs?flow={flow['id']}")).json()["items"]
    assert {job["id"] for job in found} == mine
    found = (await ask(olga, "GET", f"/jobs?flow={flow['id']}&status=approved")).json()["items"]
    assert len(found) == 2
    assert (await ask(olga, "GET", f"/jobs?flow={uuid4()}")).json()["items"] == []
    bulk = {"verb": "cancel", "filter": {"flow": flow["id"]}, "dry_run": True}
    assert (await ask(olga, "POST", "/jobs/bulk", json=bulk)).json()["matched"] == 3


async def test_quota_counts_the_jobs_of_a_flow(ask: Ask, people: People) -> None:
    ann = people.new("ann")
    people.grant(ann.id, "submitter", max_queued=2)
    answer = await ask(ann, "POST", "/flows", json=CHORD)
    assert (answer.status_code, answer.json()["code"]) == (429, "quota_exceeded")
    assert (await ask(ann, "GET", "/flows")).json()["items"] == []


async def test_stream_of_a_flow_ends_with_the_flow(app: FastAPI, ask: Ask, people: People) -> None:
    olga = people.new("olga", "operator")
    flow = (await ask(olga, "POST", "/flows", json=CHORD)).json()
    async with reading(app, olga, f"/flows/{flow['id']}/stream") as stream:
        first = await stream.next()
        assert first is not None
        assert (first.name, first.data["status"]) == ("flow.state", "running")
        await ask(olga, "POST", f"/flows/{flow['id']}/cancel")
        names = []
        while (event := await stream.next()) is not None:
            names.append(event.name)
        assert names[-1] == "flow.cancelled"
        assert "job.cancelled" in names


async def test_stream_of_a_flow_ends_with_the_right_to_see_it(
    app: FastAPI,
    ask: Ask,
    people: People,
    conn: psycopg.Connection[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("laneway.api.routes.flows.PING_S", 0.05)
    olga, vic = people.new("olga", "operator"), people.new("vic", "viewer")
    flow = (await ask(olga, "POST", "/flows", json=CHORD)).json()
    async with reading(app, vic, f"/flows/{flow['id']}/stream") as stream:
        first = await stream.next()
        assert first is not None
        conn.execute(
            "update laneway.role_grants set scope = 'own' where principal_id = %s", [vic.id]
        )
        await app.state.hub.review()
        await ask(olga, "POST", f"/flows/{flow['id']}/cancel")
        assert await stream.rest() == []


async def test_topic_has_the_events_of_one_flow(app: FastAPI, ask: Ask, people: People) -> None:
    olga = people.new("olga", "operator")
    flow = (await ask(olga, "POST", "/flows", json=CHORD)).json()
    topics = (f"flow:{flow['id']}",)
    async with reading(app, olga, "/events", topics=topics) as stream:
        await stream.next()
        other = (await ask(olga, "POST", "/jobs", json={"job_type": "greet"})).json()
        await ask(olga, "POST", f"/jobs/{flow['jobs'][0]['id']}/cancel")
        event = await stream.next()
        assert event is not None
        assert (event.name, event.data["flow"]) == ("job.cancelled", flow["id"])
        assert event.data["id"] != other["id"]
