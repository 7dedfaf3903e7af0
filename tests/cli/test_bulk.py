"""Laws of `laneway jobs VERB` with a filter in place of ids."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from laneway.domain.filter import JobFilter
from tests.cli.conftest import Run
from tests.cli.terminal import terminal
from tests.control.test_bulk import awaiting
from tests.support.job_factory import JobFactory


def test_dry_run_counts_and_changes_nothing(run: Run, factory: JobFactory) -> None:
    failed = [factory.failed() for _ in range(7)]
    shown = run("jobs", "retry", "--type", "greet", "--dry-run")
    assert (shown.exit_code, shown.stderr) == (0, "")
    head, *sample = shown.stdout.splitlines()
    assert head == "7 jobs would be retried"
    assert sample == [f"  {job_id} greet failed" for job_id in failed[:1:-1]]
    found = json.loads(run("jobs", "retry", "--q", "valueerror", "--dry-run", "--json").stdout)
    assert (found["verb"], found["matched"], found["is_more"]) == ("retry", 7, False)
    assert run("jobs", "ls", "--status", "failed", "--json").stdout.count("\n") == 7


def test_bulk_verb_prints_changes_and_refusals(run: Run, factory: JobFactory) -> None:
    factory.failed(tags=("red",))
    factory.failed(tags=("red",), unique_key="k")
    factory.submit(unique_key="k")
    done = run("jobs", "retry", "--tag", "red", "--yes")
    assert (done.exit_code, done.stdout) == (4, "")
    assert done.stderr == (
        "1 job retried\n1 job refused: another job that has not ended holds its unique_key\n"
    )
    again = run("jobs", "retry", "--tag", "red", "--yes", "--json")
    assert json.loads(again.stdout)["done"] == 0
    assert run("jobs", "delete", "--tag", "red", "--yes").stderr == "1 job deleted\n"
    assert run("jobs", "delete", "--tag", "red", "--yes").exit_code == 0


def test_run_now_takes_delayed_jobs_of_a_filter(run: Run, factory: JobFactory) -> None:
    factory.submit("later", delay=3600.0)
    assert run("jobs", "run-now", "--type", "later", "--dry-run").stdout.startswith("1 job would")
    done = run("jobs", "run-now", "--type", "later", "--yes")
    assert (done.exit_code, done.stderr) == (0, "1 job made due\n")
    assert run("jobs", "run-now").exit_code == 2


def test_cancel_stores_actor_and_reason(run: Run, factory: JobFactory) -> None:
    job_id = factory.submit("b")
    done = run("--by", "ann", "jobs", "cancel", "--all", "--reason", "storm", "--yes")
    assert (done.exit_code, done.stderr) == (0, "1 job cancelled\n")
    output = factory.conn.execute("select cancel_by, cancel_reason from laneway.jobs_view"
                              " where id = %s", [job_id]).fetchone()  # fmt: skip
    assert output == ("ann", "storm")


def test_cancel_lists_jobs_that_were_only_asked_to_stop(run: Run, factory: JobFactory) -> None:
    for _ in range(2):
        factory.running()
    factory.submit()
    done = run("jobs", "cancel", "--all", "--yes")
    assert (done.exit_code, done.stderr) == (0, "1 job cancelled, 2 asked to stop\n")
    again = json.loads(run("jobs", "cancel", "--all", "--yes", "--json").stdout)
    assert again["asked_to_stop"] == again["done"] == 2


def test_approve_and_reject_decide_by_id_and_by_filter(run: Run, factory: JobFactory) -> None:
    cheap, dear, dearest = (awaiting(factory, cost) for cost in (1.0, 9.0, 99.0))
    cheap_enough = ("--max-cost", 5, "--unit", "EUR")
    shown = run("jobs", "approve", *cheap_enough, "--dry-run")
    assert shown.stdout.splitlines() == [
        "1 job would be approved",
        f"  {cheap} spend awaiting_approval",
    ]
    done = run("--by", "ann", "jobs", "approve", *cheap_enough, "--comment", "small", "--yes")
    assert (done.exit_code, done.stderr) == (0, "1 job approved\n")
    assert run("jobs", "approve", dear).stderr == f"job {dear}: approved\n"
    assert run("jobs", "approve", dear).exit_code == 4
    assert run("jobs", "reject", "--all", "--yes").exit_code == 2
    rejected = run("jobs", "reject", "--type", "spend", "--reason", "no money", "--yes", "--json")
    assert json.loads(rejected.stdout)["done"] == 1
    assert json.loads(run("jobs", "show", dearest, "--json").stdout)["status"] == "cancelled"


@pytest.mark.parametrize("verb", ["approve", "cancel", "retry", "delete"])
def test_neither_ids_nor_a_filter_is_a_usage_error_and_so_are_both(run: Run, verb: str) -> None:
    some_id = UUID(int=7)
    assert run("jobs", verb).exit_code == 2
    assert run("jobs", verb, some_id, "--all").exit_code == 2
    assert run("jobs", verb, some_id, "--tag", "x").exit_code == 2
    assert run("jobs", verb, "--tag", "").exit_code == 2
    assert run("jobs", verb, "--status", "nope").exit_code == 2
    assert "give job ids, a filter or --all" in run("jobs", verb, "--yes").stderr


@pytest.mark.parametrize(
    "args",
    [
        ["retry", "--status", "completed"],
        ["cancel", "--status", "failed"],
        ["delete", "--status", "approved"],
        ["retry", "--since", "2002-01-01T00:00:00Z", "--until", "2001-01-01T00:00:00Z"],
        ["retry", "--since", "1h", "--older-than", "2h"],
        ["retry", "--since", f"{'9' * 400}d"],
        ["retry", "--status", "running", "--ended-since", "1h"],
        ["retry", "--older-than", "soon"],
        ["retry", "--older-than", "9" * 5000],
        ["approve", "--max-cost", "5"],
        ["approve", "--max-cost", "1e400", "--unit", "EUR"],
        ["reprioritize", "--type", "a"],
        ["reprioritize", "--priority", "5"],
        ["reprioritize", "--type", "a", "--priority", "40000"],
        ["reprioritize", str(UUID(int=7))],
        ["reprioritize", str(UUID(int=7)), "5", "--priority", "5"],
        ["reprioritize", str(UUID(int=7)), "5", "--type", "a"],
        ["retry", "--unit", "EUR"],
        ["retry", "--lane", "No Lane"],
    ],
)
def test_invalid_value_is_usage_error(run: Run, args: list[str]) -> None:
    refused = run("jobs", *args, "--yes")
    assert (refused.exit_code, refused.stdout) == (2, "")


def test_without_terminal_yes_is_required(run: Run, factory: JobFactory) -> None:
    factory.failed()
    refused = run("jobs", "retry", "--all")
    assert (refused.exit_code, "--yes" in refused.stderr) == (4, True)
    assert run("jobs", "ls", "--status", "failed", "--json").stdout.count("\n") == 1


def test_person_is_shown_the_count_and_asked(dsn: str, factory: JobFactory) -> None:
    job_id = factory.failed()
    factory.failed()
    with terminal(dsn, "jobs", "retry", "--type", "greet") as shown:
        shown.until("Retry 2 jobs?")
        shown.type("n\n")
        assert shown.wait() == 1
    assert str(job_id) in shown.seen
    with terminal(dsn, "jobs", "retry", "--type", "greet") as shown:
        shown.until("Retry 2 jobs?")
        shown.type("y\n")
        assert shown.wait() == 0
    assert "2 jobs retried" in shown.seen


def test_dead_letters_are_searched_by_their_error(run: Run, factory: JobFactory) -> None:
    claim = factory.running("fetch")
    factory.settle(claim, "giveup", error='{"type": "ReadTimeout", "message": "after 30 s"}')
    factory.failed("fetch")
    listed = run("jobs", "ls", "--status", "failed", "--q", "TIMEOUT", "--json").stdout
    assert [json.loads(each)["id"] for each in listed.splitlines()] == [str(claim.job_id)]


def test_list_narrows_by_worker_age_and_cost(run: Run, factory: JobFactory) -> None:
    worker_id = factory.register(name="host:1")
    job_id = factory.completed()
    factory.submit()

    def listed(*args: object) -> list[str]:
        lines = run("jobs", "ls", "--json", *args).stdout.splitlines()
        return [json.loads(each)["id"] for each in lines]

    assert listed("--worker", "host:1") == listed("--worker", worker_id) == [str(job_id)]
    assert listed("--older-than", "1h") == listed("--max-cost", 5, "--unit", "EUR") == []
    assert len(listed("--older-than", "0s")) == len(listed("--since", "1h")) == 2
    assert listed("--since", "1h", "--until", "2001-01-01T00:00:00Z") == []
    assert listed("--until", "2001-01-01T00:00:00Z") == []
    (ended,) = listed("--status", "completed")
    for since in ("1h", "2001-01-01T00:00:00Z"):
        assert listed("--ended-since", since) == [ended]


def test_ages_use_databases_clock(
    run: Run, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the clock of this machine says, a duration arrives as it was given."""
    from laneway.control import jobs as control

    seen: list[JobFilter] = []
    listing = control.listing

    async def listen(db: Any, wanted: JobFilter, **more: Any) -> Any:
        seen.append(wanted)
        return await listing(db, wanted, **more)

    monkeypatch.setattr(control, "listing", listen)
    assert run("jobs", "ls", "--since", "2h").exit_code == 0
    wrong = run("jobs", "ls", "--since", "yesterday")
    assert (wrong.exit_code, "such as 30m, 2h" in wrong.stderr) == (2, True)
    assert run("jobs", "ls", "--since", "2030-01-01T00:00:00Z").exit_code == 0
    assert [(each.newer_than, each.since) for each in seen] == [
        (7200.0, None), (None, datetime(2030, 1, 1, tzinfo=UTC)),
    ]  # fmt: skip


def test_many_jobs_take_another_priority(run: Run, factory: JobFactory) -> None:
    first, second = (factory.submit("a", tags=("urgent",)) for _ in range(2))
    factory.submit("a")
    shown = run("jobs", "reprioritize", "--tag", "urgent", "--priority", 9, "--dry-run")
    assert shown.stdout.startswith("2 jobs would be reprioritized\n")
    done = run("jobs", "reprioritize", "--tag", "urgent", "--priority", 9, "--yes")
    assert (done.exit_code, done.stderr) == (0, "2 jobs reprioritized\n")
    assert [claim.job_id for claim in factory.claim("a", room=2)] == [first, second]
    job_id = factory.submit("b")
    assert run("jobs", "reprioritize", job_id, 3).stderr == f"job {job_id}: priority 3\n"
    assert run("jobs", "reprioritize", job_id, "--", -3).stderr == f"job {job_id}: priority -3\n"
    done = run("jobs", "reprioritize", job_id, "--priority", -4)
    assert done.stderr == f"job {job_id}: priority -4\n"


def test_job_that_comes_while_a_person_is_asked_is_not_taken(dsn: str, factory: JobFactory) -> None:
    factory.submit("a")
    with terminal(dsn, "jobs", "cancel", "--type", "a") as shown:
        shown.until("Cancel 1 job?")
        late = factory.submit("a")
        shown.type("y\n")
        assert shown.wait() == 0
    assert "1 job cancelled" in shown.seen
    assert [claim.job_id for claim in factory.claim("a", room=2)] == [late]
