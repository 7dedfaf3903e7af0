"""Laws of `laneway flows`, on a database and through a server, and of the drawn graph."""

from __future__ import annotations

import json
import re
import shlex
import time
from uuid import UUID, uuid4

import pytest

from laneway.cli import flow_graph
from laneway.cli.flow_groups import grouped
from laneway.domain.flow import FlowJob
from laneway.domain.job import new_job_id
from laneway.domain.states import Status
from laneway.store import handler_waits
from laneway.store.handler_waits import NewWait
from laneway.store.lanes import peek
from tests.cli.conftest import invoke
from tests.support.job_factory import JobFactory
from tests.support.store_client import StoreClient


@pytest.fixture
def flow(factory: JobFactory) -> UUID:
    """Two pages and a job after both."""
    flow_id, one, two = new_job_id(), new_job_id(), new_job_id()
    factory.conn.execute("select laneway.create_flow(%s, 'nightly')", [flow_id])
    for job_id in (one, two):
        factory.conn.execute(
            "select laneway.submit('page', '{}', id => %s::uuid, flow => %s)", [job_id, flow_id]
        )
    factory.conn.execute(
        "select laneway.submit('join', '{}', flow => %s, after => %s::uuid[])",
        [flow_id, [one, two]],
    )
    return flow_id


def test_flows_are_listed_and_shown(env: dict[str, str], flow: UUID) -> None:
    listed = invoke("flows", "ls", env=env)
    assert (listed.exit_code, str(flow) in listed.stdout) == (0, True), listed.output
    (line,) = invoke("flows", "ls", "--status", "running", "--json", env=env).stdout.splitlines()
    assert json.loads(line)["counts"] == {"jobs": 3, "completed": 0, "failed": 0, "cancelled": 0}
    assert "no flows" in invoke("flows", "ls", "--name", "other", env=env).stderr
    shown = invoke("flows", "show", flow, env=env)
    lines = shown.stdout.splitlines()
    assert lines[:2] == [f"{flow} nightly: running, 0 of 3 jobs completed", "page ×2: queued"]
    (join,) = re.fullmatch("└─ join ([0-9a-f-]+): waiting", lines[2]).groups()  # type: ignore[union-attr]
    assert 13 <= len(join) <= 36
    assert "waits for 2 jobs" in invoke("jobs", "explain", join, env=env).stdout
    diagram = invoke("flows", "show", flow, "--mermaid", env=env).stdout.splitlines()
    assert diagram[:4] == [
        "flowchart TD",
        '    j0["page ×2<br/>queued"]',
        '    j1["join<br/>waiting"]',
        "    j0 --> j1",
    ]
    assert len(json.loads(invoke("flows", "show", flow, "--json", env=env).stdout)["jobs"]) == 3


def test_held_job_of_a_flow_is_shown(env: dict[str, str], factory: JobFactory) -> None:
    flow_id, first = new_job_id(), new_job_id()
    factory.conn.execute("select laneway.create_flow(%s, 'nightly')", [flow_id])
    submit = "select laneway.submit('page', '{}', id => %s::uuid, flow => %s)"
    factory.conn.execute(submit, [first, flow_id])
    after = "select laneway.submit('join', '{}', flow => %s, after => %s::uuid[],"
    for effect in ("hold", "run"):
        factory.conn.execute(f"{after} after_failure => '{effect}')", [flow_id, [first]])
    invoke("jobs", "cancel", first, env=env)
    page, joins = invoke("flows", "show", flow_id, env=env).stdout.splitlines()[1:]
    assert [re.sub(" [0-9a-f-]{13,}", "", page), joins] == [
        "page: cancelled",
        "└─ join ×2: 1 waiting (held), 1 queued",
    ]
    diagram = invoke("flows", "show", flow_id, "--mermaid", env=env).stdout
    assert "waiting (held), 1 queued" in diagram
    invoke("jobs", "retry", first, env=env)
    assert "held" not in invoke("flows", "show", flow_id, env=env).stdout


def test_failed_job_of_a_flow_shows_its_error(env: dict[str, str], factory: JobFactory) -> None:
    flow_id, first = new_job_id(), new_job_id()
    factory.conn.execute("select laneway.create_flow(%s, 'trip')", [flow_id])
    submit = "select laneway.submit('book', '{}', id => %s::uuid, flow => %s, max_retries => 0)"
    factory.conn.execute(submit, [first, flow_id])
    (claim,) = factory.claim("book")
    error = {"type": "ValueError", "message": "sold out\x1b[31m\nsecond line", "traceback": "…"}
    factory.settle(claim, "giveup", error=json.dumps(error))
    line = invoke("flows", "show", flow_id, env=env).stdout.splitlines()[1]
    found = re.fullmatch(r"book ([0-9a-f-]+): failed; ValueError: sold out(.*)", line)
    assert found is not None, line
    assert "\x1b" not in found[2]
    assert "second" not in line
    assert str(first).startswith(found[1])
    assert "sold out" not in invoke("flows", "show", flow_id, "--mermaid", env=env).stdout


def test_approved_job_of_a_flow_is_no_queued_one(
    env: dict[str, str], factory: JobFactory, flow: UUID
) -> None:
    factory.conn.execute(
        "insert into laneway.approvals (seq, decision, decided_at, decided_by)"
        " select min(seq), 'approved', now(), 'ann' from laneway.jobs where job_type = 'page'"
    )
    shown = invoke("flows", "show", flow, env=env)
    assert "page ×2: 1 approved, 1 queued" in shown.stdout, shown.output
    detail = json.loads(invoke("flows", "show", flow, "--json", env=env).stdout)
    assert [each["status"] for each in detail["jobs"]] == ["approved", "approved", "waiting"]


def test_flow_is_found_by_its_first_digits(env: dict[str, str], flow: UUID) -> None:
    assert invoke("flows", "show", str(flow)[:13], env=env).exit_code == 0
    assert invoke("flows", "show", "ffff", env=env).exit_code == 3
    assert invoke("flows", "show", uuid4(), env=env).exit_code == 3


def test_flow_is_cancelled_and_retried(env: dict[str, str], flow: UUID) -> None:
    done = invoke("flows", "cancel", flow, "--reason", "not today", env=env)
    assert done.stderr == f"flow {flow}: 3 jobs cancelled or asked to stop\n"
    watched = invoke("flows", "watch", flow, env=env)
    assert (watched.exit_code, "cancelled" in watched.stdout) == (1, True)
    again = json.loads(invoke("flows", "retry", flow, "--json", env=env).stdout)
    assert (again["changed"], again["status"]) == (3, "running")
    invoke("jobs", "cancel", "--flow", flow, "--type", "join", "--yes", env=env)
    done = invoke("flows", "retry", flow, env=env)
    assert done.stderr == f"flow {flow}: 1 job queued again\n"


def test_retry_that_queues_nothing_says_why(
    env: dict[str, str], factory: JobFactory, flow: UUID
) -> None:
    done = invoke("flows", "retry", flow, env=env)
    why = "nothing in it has failed or was cancelled"
    assert (done.exit_code, done.stderr) == (0, f"flow {flow}: 0 jobs queued again: {why}\n")
    other, first = new_job_id(), new_job_id()
    factory.conn.execute("select laneway.create_flow(%s, 'daily')", [other])
    submit = "select laneway.submit('page', '{}', id => %s, flow => %s, unique_key => 'one')"
    factory.conn.execute(submit, [first, other])
    invoke("jobs", "cancel", first, env=env)
    factory.conn.execute("select laneway.submit('page', '{}', unique_key => 'one')")
    done = invoke("flows", "retry", other, env=env)
    assert done.exit_code == 0
    assert done.stderr.startswith(
        f"flow {other}: 0 jobs queued again: its failed and cancelled jobs are left alone, because"
        " another job has a unique_key"
    )


def test_job_is_submitted_after_another(env: dict[str, str], factory: JobFactory) -> None:
    first = factory.submit()
    made = invoke(
        "jobs", "submit", "greet", "--after", str(first)[:18], "--after-failure", "hold", "--json",
        env=env,
    )  # fmt: skip
    assert made.exit_code == 0, made.output
    job = json.loads(made.stdout)
    assert (job["status"], job["waits_for"]["jobs"]) == ("waiting", [str(first)])
    assert "waits for 1 job" in invoke("jobs", "ls", "--status", "waiting", env=env).stdout
    wrong = invoke("jobs", "submit", "greet", "--after", first, "--after-failure", "x", env=env)
    assert (wrong.exit_code, "cancel, run, hold" in wrong.stderr) == (2, True)


def test_effect_of_a_failure_needs_a_job_to_come_after(
    env: dict[str, str], factory: JobFactory
) -> None:
    wrong = invoke("jobs", "submit", "greet", "--after-failure", "run", env=env)
    assert wrong.exit_code == 2, wrong.output
    assert "--after-failure needs --after" in wrong.stderr
    assert factory.conn.execute("select count(*) from laneway.jobs").fetchone() == (0,)


def test_jobs_of_a_flow_are_listed_and_cancelled(
    env: dict[str, str], factory: JobFactory, flow: UUID
) -> None:
    other = factory.submit()
    lines = invoke("jobs", "ls", "--flow", flow, "--json", env=env).stdout.splitlines()
    assert {json.loads(line)["flow"] for line in lines} == {str(flow)}
    assert len(lines) == 3
    done = invoke("jobs", "cancel", "--flow", flow, "--yes", env=env)
    assert done.exit_code == 0, done.output
    left = invoke("jobs", "show", other, "--json", env=env)
    assert json.loads(left.stdout)["status"] == "approved"
    assert invoke("jobs", "ls", "--flow", "nope", env=env).exit_code == 2


@pytest.mark.parametrize(
    "payload,cure",
    [
        ("yes", """; for a string write '"yes"'"""),
        ("it's", "; for a string write"),
        ('{"a"', ""),
        (' {"a"', ""),
    ],
)
def test_word_as_payload_of_an_event_says_how_to_write_it(
    env: dict[str, str], payload: str, cure: str
) -> None:
    refused = invoke("events", "send", "vote", payload, env=env)
    assert (refused.exit_code, "payload: is not JSON" in refused.stderr) == (2, True)
    assert ("for a string write" in refused.stderr) == bool(cure)
    assert cure in refused.stderr
    if cure:
        written = shlex.split(refused.stderr.partition("for a string write ")[2])[0]
        assert json.loads(written) == payload
        assert invoke("events", "send", "vote", written, env=env).exit_code == 0


def test_event_is_sent(env: dict[str, str], factory: JobFactory) -> None:
    done = invoke("events", "send", "reviewed", '{"by": "ann"}', "--key", "folder-7", env=env)
    assert done.exit_code == 0, done.output
    assert done.stderr == "event reviewed: no job waits for it; it is kept for one that asks\n"
    row = factory.conn.execute("select name, key, payload from laneway.sent_events").fetchone()
    assert row == ("reviewed", "folder-7", {"by": "ann"})
    done = invoke("events", "send", "signed", "--retention", "2h", env=env)
    assert done.exit_code == 0, done.output
    kept = "select (expires_at - sent_at)::text from laneway.sent_events where name = 'signed'"
    assert factory.conn.execute(kept).fetchone() == ("02:00:00",)


def test_event_says_how_many_jobs_it_reached(env: dict[str, str], dsn: str) -> None:
    with StoreClient(dsn) as db:
        for n, words in ((1, "1 job"), (2, "2 jobs")):
            for _ in range(n):
                claim = db.running()
                db.run(handler_waits.begin(claim, NewWait("go", "event", None, "go", words)))
                db.settle(claim, "wait", result="go")
                db.run(peek([]))  # a poll of some worker
            sent = invoke("events", "send", "go", "--key", words, env=env)
            assert sent.stderr == f"event go: sent to {words}\n", sent.output
            assert len(db.claimed(n)) == n


def test_job_names_the_jobs_around_it(env: dict[str, str], flow: UUID, factory: JobFactory) -> None:
    rows = factory.conn.execute("select id from laneway.jobs order by seq").fetchall()
    one, two, join = (row[0] for row in rows)
    # Wide enough that no cell is folded.
    wide = {**env, "COLUMNS": "200"}
    shown = invoke("jobs", "show", str(join), env=wide)
    assert f"{one}, {two} (if one fails: cancel)" in shown.stdout, shown.output
    detail = json.loads(invoke("jobs", "show", str(one), "--json", env=env).stdout)
    assert (detail["after"], detail["owner"], detail["followers"]) == ([], None, [str(join)])


# -- the drawing ------------------------------------------------------------------------------


def job(job_type: str, *after: FlowJob, status: Status = Status.APPROVED, **more: str) -> FlowJob:
    return FlowJob(
        id=new_job_id(),
        job_type=job_type,
        status=status,
        after=tuple(each.id for each in after),
        name=more.get("name"),
    )


def drawn(jobs: list[FlowJob]) -> list[str]:
    return list(flow_graph.drawn(grouped(jobs)))


def mermaid(jobs: list[FlowJob]) -> list[str]:
    return list(flow_graph.mermaid(grouped(jobs)))


def test_graph_names_the_parents_that_its_place_does_not_show() -> None:
    extract, clean = job("extract", status=Status.COMPLETED), job("clean")
    load = job("load", extract, clean)
    report = job("report", load, name="the report")
    alone = job("alone")
    assert drawn([extract, clean, load, report, alone]) == [
        "extract: completed",
        "clean: queued",
        "└─ load: queued, also after extract",
        "   └─ report (the report): queued",
        "alone: queued",
    ]


def test_wide_graph_is_one_line_per_group() -> None:
    pages = [job("page", status=Status.COMPLETED) for _ in range(150)]
    pages += [job("page", status=Status.RUNNING) for _ in range(50)]
    join = job("join", *pages)
    assert drawn([*pages, join]) == [
        "page ×200: 150 completed, 50 running",
        "└─ join: queued",
    ]


def test_jobs_outside_of_the_flow_are_mentioned() -> None:
    other = job("other")
    assert drawn([job("load", other)]) == ["load: queued, also after jobs outside of this flow"]


def test_long_chain_is_drawn_up_to_a_bound() -> None:
    jobs = [job("a")]
    for i in range(5000):
        jobs.append(job(f"t{i}", jobs[-1]))
    lines = drawn(jobs)
    assert lines[-1] == "… 4801 more; --json has all"
    assert max(map(len, lines)) < 120


def test_names_cannot_break_a_diagram_or_a_terminal() -> None:
    (_, node, *_) = mermaid([job('a"]; click x "\x1b[31m')])
    assert "\x1b" not in node
    assert node.count('"') == 2


def test_names_and_children_of_alike_jobs_are_kept() -> None:
    hotel = job("book", name="hotel", status=Status.COMPLETED)
    flight = job("book", name="flight", status=Status.FAILED)
    car = job("book", name="car", status=Status.COMPLETED)
    undo = job("undo", car, name="undo car", status=Status.COMPLETED)
    waiter = job("waiter", hotel, name="v")
    jobs = [hotel, flight, car, undo, waiter]
    assert drawn(jobs) == [
        "book (hotel): completed",
        "└─ waiter (v): queued",
        "book (flight): failed",
        "book (car): completed",
        "└─ undo (undo car): completed",
    ]
    edges = [line.strip() for line in mermaid(jobs) if "-->" in line]
    assert edges == ["j2 --> j3", "j0 --> j4"]


def test_alike_jobs_with_other_children_have_lines_of_their_own() -> None:
    one, two = job("fetch"), job("fetch")
    children = [job("parse", one), job("parse", one), job("parse", one, name="g")]
    assert drawn([one, two, *children]) == [
        "fetch: queued",
        "├─ parse ×2: queued",
        "└─ parse (g): queued",
        "fetch: queued",
    ]


def test_edges_of_groups_hold_for_all_their_jobs() -> None:
    loads = [job("load") for _ in range(4)]
    cleans = [job("clean", each) for each in loads[:3]]
    last = job("report", cleans[0])
    assert drawn([*loads, *cleans, last]) == [
        "load: queued",
        "└─ clean: queued",
        "   └─ report: queued",
        "load ×2: queued",
        "└─ clean ×2: queued",
        "load: queued",
    ]


def test_graph_with_too_many_names_says_what_it_leaves_out() -> None:
    first = [job("book", name=name) for name in ("hotel", "car")]
    pages = [job("page", *first, name=f"page {n}") for n in range(10_000)]
    began = time.monotonic()
    lines = drawn([*first, *pages, job("join", *pages)])
    assert time.monotonic() - began < 5
    assert lines == [
        "book (hotel): queued",
        "book (car): queued",
        "└─ page ×10000: queued, also after book (hotel)",
        "   └─ join: queued",
        "(too many names for one graph: alike jobs share a line; --json has all names)",
    ]


@pytest.mark.parametrize("shape", ["zigzag", "layers", "chain"])
def test_unlike_jobs_that_are_too_many_share_lines(shape: str) -> None:
    jobs: list[FlowJob] = []
    for n in range(5000):
        jobs.append(job("load", *(jobs[-2:-1] if shape == "chain" else ())))
        before = jobs if shape == "chain" or n == 0 else [jobs[-1], jobs[-3]]
        if shape == "layers":
            before = jobs[:: max(1, len(jobs) // 3)]
        jobs.append(job("clean", *before[-3:]))
    jobs.append(job("report", jobs[1]))
    began = time.monotonic()
    lines = [*drawn(jobs), *mermaid(jobs)]
    assert time.monotonic() - began < 15
    assert len(lines) < 2000
    if shape == "zigzag":
        assert "└─ clean ×5000: queued" in lines
        assert any(line.startswith("(too many unlike jobs for one graph") for line in lines)
        assert any(line.startswith('    caution["too many unlike jobs') for line in lines)
    if shape == "chain":
        assert any("more; --json has all" in line for line in lines if "more[" in line)


def test_group_of_one_name_shows_it() -> None:
    assert drawn([job("page", name="a"), job("page", name="a")]) == ["page (a) ×2: queued"]


def test_names_in_a_diagram_are_text() -> None:
    (_, node, *_) = mermaid([job("f", name="<b>1 & 2</b> #lt; %%{init: {}}%% `x`")])
    assert node == (
        '    j0["f (#lt;b#gt;1 #amp; 2#lt;/b#gt; #35;lt; #37;#37;{init: {}}#37;#37; #96;x#96;)'
        '<br/>queued"]'
    )
