"""Laws of `laneway jobs`."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import pytest

import laneway
from laneway.cli import watch
from laneway.domain.states import parse_status
from laneway.store import handler_waits, leases, sent_events, steps
from laneway.store.handler_waits import NewWait
from laneway.store.leases import LogEntry, Report
from tests.cli.conftest import Run
from tests.support.job_factory import JobFactory


def test_submit_prints_only_the_id_on_stdout(run: Run, factory: JobFactory) -> None:
    made = run("jobs", "submit", "greet", '{"name": "ann"}')
    assert made.exit_code == 0
    assert "no worker has published greet yet" in made.stderr
    shown = json.loads(run("jobs", "show", UUID(made.stdout.strip()), "--json").stdout)
    assert shown["payload"] == {"name": "ann"}
    assert "@" in shown["created_by"]


def test_submit_takes_every_field(run: Run) -> None:
    made = run(
        "--by", "ann", "jobs", "submit", "greet", "--arg", "n=3", "--arg", "who=bob",
        "--arg", 'list=["1"]', "--priority", -4, "--delay", "2h", "--unique-key", "k",
        "--tag", "a", "--tag", "b", "--workspace", "w", "--max-retries", 9, "--json",
    )  # fmt: skip
    job = json.loads(made.stdout)
    assert job["payload"] == {"n": 3, "who": "bob", "list": ["1"]}
    assert (job["priority"], job["tags"], job["workspace"]) == (-4, ["a", "b"], "w")
    assert (job["unique_key"], job["max_retries"], job["created_by"]) == ("k", 9, "ann")
    again = run("jobs", "submit", "greet", "--unique-key", "k", "--workspace", "w", "--json")
    assert json.loads(again.stdout)["id"] == job["id"]
    assert json.loads(again.stdout)["duplicate"] is True
    assert "no new job was submitted" in again.stderr


def test_submit_is_unique_for_a_period(run: Run, factory: JobFactory) -> None:
    args = ("jobs", "submit", "greet", "--unique-for", "1h", "--unique-by", "n", "--json")
    first = json.loads(run(*args, '{"n": 1, "m": 1}').stdout)
    (claim,) = factory.claim()
    factory.settle(claim)
    again = run(*args, '{"n": 1, "m": 2}')
    assert (json.loads(again.stdout)["id"], "no new job" in again.stderr) == (first["id"], True)
    assert json.loads(run(*args, '{"n": 2, "m": 1}').stdout)["id"] != first["id"]


def test_payload_comes_from_text_file_or_stdin(run: Run, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('{"a": 1}')
    for args, given in (
        (["--file", tmp_path / "p.json"], None),
        (["-"], '{"a": 1}'),
        (["--file", "-"], '{"a": 1}'),
        (['{"a": 1}'], None),
    ):
        made = run("jobs", "submit", "greet", *args, "--json", input=given)
        assert json.loads(made.stdout)["payload"] == {"a": 1}, args


@pytest.mark.parametrize(
    "args,output",
    [
        (["greet", '{"a":\n  nope}'], "line 2 column 3"),
        (["greet", "-"], "stdin: is not JSON at line 1 column 1"),
        (["greet", '{"a": NaN}'], "payload"),
        (["greet", '{"a": "\\u0000"}'], "NUL"),
        (["greet", "{}", "--file", "x"], "not both"),
        (["greet", "--file", "no such file"], "cannot read"),
        (["greet", "[1]", "--arg", "a=1"], "must be a JSON object"),
        (["greet", "--arg", "a"], "name=value"),
        (["greet", "--arg", f"a={'[' * 5000}{']' * 5000}"], "payload.a[0]"),
        (["greet", "--arg", f"a={'1' * 5000}"], "payload.a: numbers may have at most 308 digits"),
        (["greet", "--delay", "5y"], "not a duration"),
        (["greet", "--run-at", "tomorrow"], "ISO 8601"),
        (["greet", "--run-at", "2030-01-01T00:00:00"], "time zone"),
        (["greet", "--delay", "5", "--run-at", "2030-01-01T00:00:00Z"], "not both"),
        (["greet", "--priority", "99999"], "priority"),
        (["", "{}"], "job_type"),
        ([], "TYPE"),
    ],
)
def test_invalid_value_is_usage_error_with_its_name(run: Run, args: list[str], output: str) -> None:
    made = run("jobs", "submit", *args, input="")
    assert (made.exit_code, made.stdout) == (2, "")
    assert output in made.stderr


def test_published_schema_is_enforced_without_the_handlers_code(
    run: Run, factory: JobFactory
) -> None:
    schema = '{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}'
    factory.publish("greet", schema)
    assert run("jobs", "submit", "greet", '{"n": "x"}').exit_code == 2
    assert run("jobs", "submit", "greet", '{"n": 1}').exit_code == 0


def test_argument_that_must_be_a_string_says_how_to_write_it(run: Run, factory: JobFactory) -> None:
    text = '{"type": "string"}'
    schema = f'{{"type": "object", "properties": {{"month": {text}, "note": {text}}}}}'
    factory.publish("report", schema)
    refused = run("jobs", "submit", "report", "--arg", "month=11", "--arg", "note=hello")
    assert refused.exit_code == 2
    assert (
        """payload.month: must be of type "string": write --arg 'month="11"'\n""" in refused.stderr
    )
    assert run("jobs", "submit", "report", "--arg", 'month="11"').exit_code == 0
    long = run("jobs", "submit", "report", "--arg", f"month=[{'1,' * 100}1]")
    assert (long.exit_code, "write" in long.stderr) == (2, False)
    # Not given with --arg.
    other = run("jobs", "submit", "report", '{"month": 11}', "--arg", "note=hello")
    assert (other.exit_code, "--arg" in other.stderr) == (2, False)


def test_ls_filters_and_pages(run: Run, factory: JobFactory) -> None:
    done = factory.completed("a", tags=("red",))
    waiting = [factory.submit("b") for _ in range(3)]

    def listed(*args: object) -> list[UUID]:
        lines = run("jobs", "ls", "--json", *args).stdout.splitlines()
        return [UUID(json.loads(line)["id"]) for line in lines]

    assert listed() == [*waiting[::-1], done]
    assert listed("--status", "completed") == listed("--tag", "red") == listed("--type", "a")
    assert listed("--lane", "interactive") == listed("--workspace", "none") == []
    assert listed("--since", "1h") == [*waiting[::-1], done]
    assert listed("--since", "2100-01-01T00:00:00Z") == []
    page = run("jobs", "ls", "--limit", 2)
    cursor = page.stderr.split("--cursor ")[1].strip()
    assert listed("--limit", 2, "--cursor", cursor) == [waiting[0], done]
    assert str(waiting[2]) in page.stdout
    assert run("jobs", "ls", "--status", "nope").exit_code == 2
    assert run("jobs", "ls", "--limit", 0).exit_code == 2


def test_show_leaves_out_progress_without_values(run: Run, factory: JobFactory) -> None:
    claim = factory.running()
    factory.run(leases.report([Report(claim)], []))
    shown = run("jobs", "show", claim.job_id).stdout.splitlines()
    assert [line for line in shown if line.split()[:1] == ["progress"]] == []
    factory.run(leases.report([Report(claim, message="half")], []))
    assert "half" in run("jobs", "show", claim.job_id).stdout


def test_show_escapes_attempts_errors_and_log(run: Run, factory: JobFactory) -> None:
    factory.register(name="host\x1b]0;title\x07")
    claim = factory.running(payload='{"evil": "\\u001b[31mred[bold]"}')
    line = LogEntry(claim, 1, "INFO", "one\x1b[2Jtwo\u009b", 0.0)
    factory.run(leases.report([Report(claim, done=1.0, total=4.0)], [line]))
    error = json.dumps({"type": "E", "message": "bad\x1b[0m[/x]", "traceback": "a\nb\x07"})
    factory.settle(claim, "giveup", error=error)
    for args in ((), ("--json",)):
        shown = run("jobs", "show", claim.job_id, *args)
        assert shown.exit_code == 0
        assert not set("\x1b\x07\u009b") & set(shown.stdout)
    text = run("jobs", "show", claim.job_id).stdout
    assert "red[bold]" in text
    assert "[/x]" in text
    job = json.loads(run("jobs", "show", claim.job_id, "--json").stdout)
    assert job["attempts"][0]["log"][0]["message"] == "one\x1b[2Jtwo\u009b"


def test_show_counts_omitted_log_lines(run: Run, factory: JobFactory) -> None:
    claim = factory.running()
    lines = [LogEntry(claim, n, "INFO", f"line {n}", 0.0) for n in range(1, 1502)]
    factory.run(leases.report([], lines))
    text = run("jobs", "show", claim.job_id).stdout
    assert "… and 1,451 earlier lines (--logs N shows more)" in text
    assert ("line 1451\n" in text, "line 1452\n" in text) == (False, True)
    none = run("jobs", "show", claim.job_id, "--logs", "0").stdout
    assert "… and 1,501 earlier lines (--logs N shows more)" in none
    assert "line 1501\n" not in none
    text = run("jobs", "show", claim.job_id, "--logs", "1000").stdout
    assert "… and 1,301 earlier lines\n" in text
    assert ("line 1301\n" in text, "line 1302\n" in text) == (False, True)
    (attempt,) = json.loads(run("jobs", "show", claim.job_id, "--json").stdout)["attempts"]
    assert (len(attempt["log"]), attempt["log_lines"]) == (200, 1501)


@pytest.mark.parametrize(
    "verb", ["show", "cancel", "retry", "reprioritize", "delete", "watch", "wait", "explain"]
)
def test_unknown_job_exits_3_and_a_malformed_id_exits_2(run: Run, verb: str) -> None:
    more = {"reprioritize": ["1"], "delete": ["--yes"]}.get(verb, [])
    missing = run("jobs", verb, uuid4(), *more)
    assert (missing.exit_code, missing.stdout) == (3, "")
    assert missing.stderr.startswith("laneway: no job ")
    unknown = run("jobs", verb, "0190abcd", *more)
    assert (unknown.exit_code, unknown.stdout) == (3, "")
    assert "no job id begins with 0190abcd" in unknown.stderr
    for text, rule in (("nope", "hexadecimal digits"), ("019", "at least 4 digits")):
        malformed = run("jobs", verb, text, *more)
        assert malformed.exit_code == 2
        assert rule in malformed.stderr


def test_cancel_retry_and_reprioritize_change_the_job(run: Run, factory: JobFactory) -> None:
    job_id = factory.submit()
    assert run("jobs", "reprioritize", job_id, 7).stderr == f"job {job_id}: priority 7\n"
    assert run("jobs", "reprioritize", job_id, "--", -7).exit_code == 0
    cancelled = run("jobs", "cancel", job_id, "--reason", "not needed", "--json")
    assert json.loads(cancelled.stdout)["status"] == "cancelled"
    assert run("jobs", "cancel", job_id).exit_code == 4
    assert run("jobs", "reprioritize", job_id, 1).exit_code == 4
    assert run("jobs", "retry", job_id).stderr == f"job {job_id}: queued again\n"
    assert run("jobs", "retry", job_id).exit_code == 4


def test_retried_job_that_waits_names_what_it_waits_for(run: Run, factory: JobFactory) -> None:
    claim = factory.running()
    child = factory.conn.execute(
        "select job_id from laneway.submit('greet', after => %s)", [[claim.job_id]]
    ).fetchone()
    assert child is not None
    factory.settle(claim, "giveup", error='{"type": "ValueError", "message": "no"}')
    factory.conn.execute("select laneway.advance()")
    retried = run("jobs", "retry", child[0])
    assert retried.exit_code == 0
    assert retried.stderr == (
        f"job {child[0]}: waits for {claim.job_id}: `laneway jobs explain {child[0]}` says why\n"
    )


def test_cancel_of_running_job_names_its_worker(run: Run, factory: JobFactory) -> None:
    factory.register()
    claim = factory.running()
    assert run("jobs", "cancel", claim.job_id).stderr.endswith("host:1 was asked to stop\n")


def test_one_refusal_does_not_keep_the_verb_from_the_others(run: Run, factory: JobFactory) -> None:
    done, waiting = factory.completed(), factory.submit()
    result = run("jobs", "cancel", done, uuid4(), waiting)
    assert result.exit_code != 0
    assert f"job {waiting}: cancelled" in result.stderr


def test_delete_without_terminal_requires_yes(run: Run, factory: JobFactory) -> None:
    done = factory.completed()
    refused = run("jobs", "delete", done)
    assert (refused.exit_code, "--yes" in refused.stderr) == (4, True)
    dry = run("jobs", "delete", done, "--dry-run")
    assert (dry.exit_code, dry.stderr) == (0, f"job {done}: would be deleted\n")
    assert run("jobs", "show", done).exit_code == 0
    assert run("jobs", "delete", done, "--yes").exit_code == 0
    assert run("jobs", "show", done).exit_code == 3


def test_delete_refuses_unfinished_jobs(run: Run, factory: JobFactory) -> None:
    for job_id in (factory.submit("a"), factory.running("b").job_id):
        refused = run("jobs", "delete", job_id, "--yes")
        assert refused.exit_code == 4
        assert "cancel it first" in refused.stderr


def test_exit_code_of_watch_is_the_outcome(run: Run, factory: JobFactory) -> None:
    done, failed = factory.completed("a"), factory.failed("b")
    waiting = factory.submit()
    run("jobs", "cancel", waiting)
    for job_id, code in ((done, 0), (failed, 1), (waiting, 1)):
        watched = run("jobs", "watch", job_id)
        assert watched.exit_code == code
        assert json.loads(watched.stdout)["id"] == str(job_id)
        # Attempts are not read while a job is followed.
        assert "attempts" not in json.loads(watched.stdout)


def test_explain_names_codes(run: Run, factory: JobFactory) -> None:
    job_id = factory.submit()
    explained = json.loads(run("jobs", "explain", job_id, "--json").stdout)
    assert "no_worker" in [reason["code"] for reason in explained["reasons"]]
    assert "  no_worker: no worker is alive" in run("jobs", "explain", job_id).stdout


def test_explain_writes_durations_and_times_for_people(
    run: Run, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Etc/GMT-2")
    time.tzset()
    job_id = factory.submit(run_at=datetime(2031, 5, 4, 9, 30, tzinfo=UTC))
    shown = run("jobs", "explain", job_id).stdout
    in_json = run("jobs", "explain", job_id, "--json").stdout
    monkeypatch.undo()
    time.tzset()
    assert re.search(r"delayed: it is due in \d+d, at 2031-05-04 11:30:00 \+02", shown)
    assert re.search(r"it is due in \d+ s, at 2031-05-04T09:30:00\+00:00", in_json)


def test_job_without_approval_is_shown_as_queued(run: Run, factory: JobFactory) -> None:
    job_id = factory.submit()
    assert " queued " in run("jobs", "ls", "--status", "approved").stdout
    assert "queued (approved)" in run("jobs", "show", job_id).stdout
    assert run("jobs", "explain", job_id).stdout.splitlines()[0].endswith(": queued")
    shown = json.loads(run("jobs", "show", job_id, "--json").stdout)
    assert (shown["status"], shown["label"]) == ("approved", "queued")


def test_unknown_lane_is_named_when_nothing_is_found(run: Run, factory: JobFactory) -> None:
    for args in (("ls",), ("ls", "--json"), ("cancel", "--dry-run", "--json"), ("counts",)):
        found = run("jobs", *args, "--lane", "typo")
        assert found.exit_code == 0
        assert found.stderr.startswith("no lane typo; existing: ")
    assert run("jobs", "ls", "--lane", "system").stderr == "no jobs\n"


def test_submit_quiet_prints_only_the_id(run: Run) -> None:
    made = run("jobs", "submit", "greet", "--quiet")
    assert (made.exit_code, made.stderr) == (0, "")
    assert made.stdout == f"{UUID(made.stdout.strip())}\n"
    for other in ("--wait", "--json"):
        assert run("jobs", "submit", "greet", "-q", other).exit_code == 2


def test_submit_stops_waiting_and_repeats_that_no_worker_has_the_type(
    run: Run, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "NOTE_S", 0.01)
    factory.publish("greet")
    waited = run("jobs", "submit", "greet", "--wait", "--timeout", "1s")
    assert waited.exit_code == 1
    assert waited.stderr.count("no live worker has greet: the job waits until one does") >= 2
    assert "the job has not ended within 1" in waited.stderr
    assert waited.stderr.splitlines()[-1].endswith("queued")
    assert run("jobs", "submit", "greet", "--timeout", "1s").exit_code == 2


def test_submit_suggests_a_published_type(run: Run, factory: JobFactory) -> None:
    factory.publish("ingestion")
    made = run("jobs", "submit", "ingestoin")
    assert "the job waits until one does; did you mean ingestion?" in made.stderr
    listed = run("jobs", "ls", "--type", "ingestionn")
    assert listed.stderr.startswith("no worker has published ingestionn; did you mean ingestion?")


def test_wait_exits_by_outcome_and_prints_results(run: Run, factory: JobFactory) -> None:
    done, other, failed = factory.completed("a"), factory.completed("b"), factory.failed("c")
    both = run("jobs", "wait", done, other, done)
    assert (both.exit_code, both.stdout) == (0, '{"ok": true}\n{"ok": true}\n')
    assert both.stderr == f"job {done} completed\njob {other} completed\n"
    mixed = run("jobs", "wait", done, failed, "--json")
    assert mixed.exit_code == 1
    assert [json.loads(line)["status"] for line in mixed.stdout.splitlines()] == [
        "completed",
        "failed",
    ]
    assert f"job {failed} failed: ValueError: no" in mixed.stderr
    assert run("jobs", "wait").exit_code == 2


def test_wait_gives_up_after_its_timeout(run: Run, factory: JobFactory) -> None:
    done, waiting = factory.completed("a"), factory.submit()
    late = run("jobs", "wait", done, waiting, "--timeout", "50ms")
    assert (late.exit_code, late.stdout) == (1, '{"ok": true}\n')
    assert late.stderr.splitlines() == [
        "not all jobs ended within 50ms",
        f"job {done} completed",
        f"job {waiting} queued",
    ]


@pytest.mark.parametrize(
    "label, status",
    [
        ("queued", "approved"),
        ("Queued", "approved"),
        ("analysing", "pending"),
        ("awaiting-approval", "awaiting_approval"),
        ("success", "completed"),
        ("canceled", "cancelled"),
        ("started", "running"),
    ],
)
def test_status_may_be_a_label(label: str, status: str) -> None:
    assert parse_status(label) == status


def test_wrong_status_is_refused_with_the_nearest(run: Run, factory: JobFactory) -> None:
    job_id = factory.submit()
    assert str(job_id) in run("jobs", "ls", "--status", "queued").stdout
    for given, shown in (
        ("quued", "did you mean queued?"),
        ("nope", "use pending, awaiting"),
        ("nope", "failed, cancelled, or another name of one of them: queued, analysing,"),
    ):
        wrong = run("jobs", "ls", "--status", given)
        output = " ".join(wrong.stderr.split())
        assert (wrong.exit_code, shown in output) == (2, True), wrong.stderr


def test_ls_shows_run_time_tags_and_error(run: Run, factory: JobFactory) -> None:
    failed = factory.failed("bad", tags=("red", "big"))
    factory.conn.execute(
        "update laneway.outcome set started_at = finished_at - interval '75 seconds'"
    )
    (row,) = [line for line in run("jobs", "ls").stdout.splitlines() if str(failed) in line]
    assert "1m15s" in row
    assert "red, big" in row
    assert "ValueError: no" in row


def test_ls_says_when_a_queued_job_is_due_and_which_retry_it_is(
    run: Run, factory: JobFactory
) -> None:
    later = run("jobs", "submit", "greet", "--delay", "2h", "--quiet").stdout.strip()
    claim = factory.running("bad", max_retries=3)
    factory.settle(claim, "fail", error='{"type": "ValueError", "message": "no"}', delay_s=3600.0)
    rows = run("jobs", "ls").stdout.splitlines()
    (due,) = [row for row in rows if later in row]
    (retry,) = [row for row in rows if str(claim.job_id) in row]
    assert re.search(r"queued .* due in 1h5\dm$", due.rstrip())
    assert re.search(r"queued .* retry 1 of 3 in 59m\d\ds$", retry.rstrip())


def test_show_prints_each_traceback_once(run: Run, factory: JobFactory) -> None:
    job_id = factory.failed()
    assert run("jobs", "show", job_id).stdout.count("here") == 1
    run("jobs", "retry", job_id)
    (claim,) = factory.claim()
    error = '{"type": "ValueError", "message": "no", "traceback": "here"}'
    factory.settle(claim, "giveup", error=error)
    text = run("jobs", "show", job_id).stdout
    assert (text.count("here"), text.count("the same traceback as above")) == (1, 1)


def test_show_cuts_tracebacks_to_the_users_frames(run: Run, factory: JobFactory) -> None:
    ours = str(Path(laneway.__file__).parent / "engine/run/executor.py")
    text = (
        "Traceback (most recent call last):\n"
        f'  File "{ours}", line 3, in run\n    run()\n'
        '  File "/srv/shop/tasks.py", line 5, in fetch\n    dial()\n'
        "ValueError: no\n"
    )
    claim = factory.running()
    error = json.dumps({"type": "ValueError", "message": "no", "traceback": text})
    factory.settle(claim, "giveup", error=error)
    shown = run("jobs", "show", claim.job_id).stdout
    assert "/srv/shop/tasks.py" in shown
    assert ours not in shown
    assert ours in run("jobs", "show", claim.job_id, "--json").stdout


def test_show_of_a_lost_attempt_mentions_no_traceback(run: Run, factory: JobFactory) -> None:
    claim = factory.running()
    factory.settle(claim, "giveup", error='{"type": "WorkerLost", "message": "it is gone"}')
    text = run("jobs", "show", claim.job_id).stdout
    assert "WorkerLost: it is gone" in text
    assert "traceback" not in text


def test_show_lists_finished_steps(run: Run, factory: JobFactory) -> None:
    claim = factory.running()
    factory.run(steps.save(claim, "fetch", '{"secret": 1}', 0.25))
    factory.run(steps.save(claim, "parse", "null", 2.0))
    text = run("jobs", "show", claim.job_id).stdout
    rows = [line.split() for line in text.splitlines() if line.startswith(("fetch", "parse"))]
    assert [row[:3] for row in rows] == [["fetch", "1", "250ms"], ["parse", "1", "2s"]]
    shown = json.loads(run("jobs", "show", claim.job_id, "--json").stdout)
    assert [step["name"] for step in shown["steps"]] == ["fetch", "parse"]
    assert "secret" not in text


def test_show_lists_the_waits_of_the_handler(
    run: Run, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    claim = factory.running()
    sent = sent_events.send("reviewed", "k", '{"secret": 1}', workspace="default", sent_by="ann")
    factory.run(sent)
    for wanted in (
        NewWait("nap", "sleep", 0.0),
        NewWait("early", "event", 0.0, "signed", ""),
        NewWait("review", "event", None, "reviewed", "k"),
        NewWait("late", "event", None, "reviewed", "k"),
    ):
        factory.run(handler_waits.begin(claim, wanted))
    shown = json.loads(run("jobs", "show", claim.job_id, "--json").stdout)["waits"]
    assert [(one["name"], one["kind"], one["event"], one["key"]) for one in shown] == [
        ("nap", "sleep", None, None),
        ("early", "event", "signed", None),
        ("review", "event", "reviewed", "k"),
        ("late", "event", "reviewed", "k"),
    ]
    assert [one["ended_at"] is None for one in shown] == [False, False, False, True]
    assert [one["sent_by"] for one in shown] == [None, None, "ann", None]
    assert [one["event_id"] is None for one in shown] == [True, True, False, True]
    assert [one["sent_at"] is None for one in shown] == [True, True, False, True]
    # The wait of a cancelled job.
    factory.conn.execute(
        "update laneway.handler_waits set done_at = '-infinity' where name = 'late'"
    )
    text = run("jobs", "show", claim.job_id).stdout
    rows = {
        line.split()[0]: line for line in text.splitlines() if line.startswith(("early", "rev"))
    }
    assert rows["early"].rstrip().endswith("timeout")
    assert "event reviewed, key k" in rows["review"]
    # The time of the event comes after its sender.
    assert "  ann  " in rows["review"]
    assert "secret" not in text


def test_times_are_shown_with_their_zone(
    run: Run, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        text = run("jobs", "show", factory.completed()).stdout
        assert re.search(r"^created_at +\S+ \S+ JST$", text, re.MULTILINE)
        assert re.search(r"^attempt 1 .* JST$", text, re.MULTILINE)
        run("--by", "ann", "lanes", "drain", "system")
        assert " JST  ann " in run("lanes", "history").stdout
        assert " JST  ann " in run("audit").stdout
    finally:
        monkeypatch.undo()
        time.tzset()


def test_counts_have_the_labels_of_other_tables(run: Run, factory: JobFactory) -> None:
    factory.submit("greet")
    counted = run("jobs", "counts").stdout
    assert [row.split()[0] for row in counted.splitlines()[1:]] == [
        "analysing", "awaiting_approval", "waiting", "queued", "running", "completed", "failed",
        "cancelled",
    ]  # fmt: skip
    assert '"status": "approved"' in run("jobs", "counts", "--json").stdout
