"""Laws of `laneway top`: 80 columns, and keys on a real terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from rich.console import Console

from laneway.cli.top_loop import split_keys
from laneway.cli.top_view import KEYS, Effect, Row, View, frame
from laneway.domain.lane import Lane
from laneway.domain.overview import Gate, LaneStatus, Overview, TypeLoad
from laneway.domain.states import Status
from tests.cli.conftest import Run
from tests.cli.terminal import terminal
from tests.support.job_factory import JobFactory

IDS = [UUID(int=number) for number in (1, 2, 3)]


def row(job_id: UUID, **changed: Any) -> Row:
    plain = Row(job_id, "default", "greet", Status.RUNNING, "running", 0, 1.0, 1.0, "w", "")
    return plain._replace(**changed)


def pressed(view: View, keys: Iterable[str]) -> tuple[View, Effect]:
    effect = Effect.NONE
    for key in keys:
        view, effect = view.press(key)
    return view, effect


def rendered(view: View, width: int, height: int) -> list[str]:
    screen = Console(width=width, height=height, color_system=None, highlight=False)
    with screen.capture() as captured:
        screen.print(frame(view, width, height, 1.0))
    return captured.get().splitlines()


def rendered_foot(view: View) -> str:
    return rendered(replace(view, overview=Overview(Gate(False, None, None), [], [], [])), 80, 24)[
        -1
    ]


def crowded() -> View:
    """A view whose every value is long."""
    lanes = [
        LaneStatus(
            Lane(f"{'a' * 60}{n:02d}", max_slots=10_000),
            10_000,
            (TypeLoad("t" * 128, 10_000, True, 999_999.0),),
            frozen_by="b" * 100,
        )
        for n in range(40)
    ]
    rows = tuple(
        row(uuid4(), job_type="t" * 128, lane="l" * 60, worker="w" * 100, detail="d" * 500)
        for _ in range(100)
    )
    overview = Overview(Gate(False, None, None), lanes, [], [])
    failures = {each.lane.name: 9_999 for each in lanes}
    return View(overview, failures, rows, {each.id: str(each.id)[:13] for each in rows})


@pytest.mark.parametrize("height", [24, 50])
def test_screen_of_80_columns_has_slots_depth_wait_and_failures(height: int) -> None:
    lines = rendered(crowded(), 80, height)
    assert max(map(len, lines)) <= 80
    assert len(lines) <= height
    head = next(line for line in lines if line.startswith("LANE"))
    assert head.split() == ["LANE", "SLOTS", "DEPTH", "WAIT", "FAILED", "1H", "STATE"]
    lane = lines[lines.index(head) + 1]
    for value in ("10000/10000", "10,000+", "11d", "9,999", "frozen"):
        assert value in lane
    assert lines[-1].strip() == KEYS


def test_arrows_select_within_the_list() -> None:
    view = View(rows=tuple(row(job_id, age_s=float(n)) for n, job_id in enumerate(IDS)))
    assert view.row is not None
    assert view.row.id == IDS[0]
    for keys, job_id in (
        (["down"], IDS[1]),
        (["j", "j", "j"], IDS[2]),
        (["down", "up"], IDS[0]),
        (["k"], IDS[0]),
    ):
        moved, effect = pressed(view, keys)
        assert moved.row is not None
        assert (moved.row.id, effect) == (job_id, Effect.NONE)


@pytest.mark.parametrize("key, effect", [("c", Effect.CANCEL), ("r", Effect.RETRY)])
def test_verb_happens_only_after_yes(key: str, effect: Effect) -> None:
    view = View(rows=(row(IDS[0]),))
    asking, before = pressed(view, [key])
    assert before is Effect.NONE
    assert asking.press("y")[1] is effect
    for other in ("n", "escape", "\r", "q", key):
        kept, nothing = asking.press(other)
        assert (nothing, kept.message) == (Effect.NONE, "nothing was changed")
    assert pressed(View(), [key])[0].message == "no job is selected"


def test_selected_job_is_kept_while_the_list_changes() -> None:
    view, _ = pressed(View(rows=tuple(map(row, IDS))), ["c"])
    chosen = view.row
    assert chosen is not None
    grown = View(rows=(row(uuid4(), age_s=0.0), *view.rows), selected=view.selected)
    assert grown.row == chosen


@pytest.mark.parametrize("key", ["c", "r"])
def test_answer_never_changes_another_job_than_asked(key: str) -> None:
    view = View(rows=(row(IDS[0], age_s=0.0), row(IDS[1], age_s=1.0)))
    asking, _ = pressed(view, ["down", key])
    refreshed = replace(asking, rows=(row(IDS[0]),))
    assert f"greet {IDS[1]}? y/n" in rendered_foot(refreshed)
    answered, effect = refreshed.press("y")
    assert effect is Effect.NONE
    assert answered.message == f"greet {IDS[1]} has left this list: nothing was changed"


@pytest.mark.parametrize("key", ["c", "r", "e"])
def test_key_after_the_selected_job_left_does_nothing(key: str) -> None:
    view = View(rows=(row(IDS[0], age_s=0.0), row(IDS[1], age_s=1.0)))
    chosen, _ = pressed(view, ["down"])
    refreshed = replace(chosen, rows=(row(IDS[0]),))
    pressed_view, effect = refreshed.press(key)
    assert (effect, pressed_view.asked) == (Effect.NONE, None)
    assert "has left this list" in pressed_view.message
    selected = pressed(pressed_view, ["down"])[0].row
    assert selected is not None
    assert selected.id == IDS[0]


@pytest.mark.parametrize("keys", [["f"], ["/", "\r"]])
def test_another_list_starts_at_its_first_job(keys: list[str]) -> None:
    chosen, _ = pressed(View(rows=(row(IDS[0]),)), ["down"])
    another = replace(pressed(chosen, keys)[0], rows=(row(IDS[1]),)).row
    assert another is not None
    assert another.id == IDS[1]


def test_sort_and_text_filter_change_what_is_shown() -> None:
    rows = (row(IDS[0], took_s=1.0, age_s=0.0), row(IDS[1], took_s=9.0, lane="docs", age_s=5.0))
    view = View(rows=rows)
    assert [each.id for each in view.shown] == IDS[:2]
    assert [each.id for each in pressed(view, ["s"])[0].shown] == IDS[1::-1]
    found, _ = pressed(view, ["/", "d", "o", "x", "\x7f", "c", "\r"])
    assert (found.text, [each.id for each in found.shown]) == ("doc", [IDS[1]])
    assert pressed(found, ["/", "z", "escape"])[0].text == "doc"
    assert pressed(found, ["/", "\r"])[0].shown == view.shown
    assert pressed(view, ["f"])[0].status is Status.APPROVED
    assert pressed(view, ["f"])[1] is Effect.READ


@pytest.mark.parametrize(
    "typed, keys",
    [
        ("q", ["q"]),
        ("\x1b[A\x1b[Bj", ["up", "down", "j"]),
        ("\x1bOA", ["up"]),
        ("\x1b", ["escape"]),
        ("\x1b[15~c", ["c"]),
        ("\x1b[1;5Cr", ["r"]),
    ],
)
def test_escape_sequences_are_keys(typed: str, keys: list[str]) -> None:
    assert list(split_keys(typed)) == keys


def test_keys_work_on_a_terminal_of_80_columns(dsn: str, factory: JobFactory) -> None:
    factory.register()
    claim = factory.running("ingestion")
    failed = factory.failed("bad")
    with terminal(dsn, "--no-color", "top", "--interval", "1h", columns=80, lines=24) as shown:
        shown.until("FAILED 1H")
        shown.until(KEYS)
        shown.type("e")
        shown.until("press a key to go back")
        assert f"{claim.job_id} ingestion in interactive: running" in shown.seen
        shown.type("x")
        shown.until(KEYS)
        shown.type("c")
        shown.until("Cancel ingestion")
        shown.type("n")
        shown.until("nothing was changed")
        assert status(factory, claim.job_id) == "running"
        shown.forget()
        shown.type("c")
        shown.until("y/n")
        shown.type("y")
        shown.until("cancel re")  # the width of its run time may cut it
        shown.type("fff")
        shown.until("failed jobs")
        shown.until("ValueError")
        shown.type("r")
        shown.until("Retry bad")
        shown.type("y")
        shown.until(f"job {failed}: queued")
        shown.type("q")
        assert shown.wait() == 0
    assert status(factory, failed) == "approved"
    assert "Traceback" not in shown.seen


def test_job_that_ended_under_a_question_takes_no_other_with_it(
    dsn: str, factory: JobFactory
) -> None:
    factory.register()
    kept, asked = factory.running("ingestion"), factory.running("polarity")
    with terminal(dsn, "--no-color", "top", "--interval", "100ms", columns=80, lines=24) as shown:
        shown.until(KEYS)
        shown.type("ssss")
        shown.until("by type")
        shown.type("jc")
        shown.until("Cancel polarity")
        factory.settle(asked)
        shown.forget()
        shown.until("1/2")
        shown.type("y")
        shown.until("nothing was changed")
        shown.type("q")
        assert shown.wait() == 0
    [(requested_at,)] = factory.conn.execute(
        "select cancel_requested_at from laneway.jobs_view where id = %s", [kept.job_id]
    ).fetchall()
    assert requested_at is None


def test_terminal_is_restored_after_top(dsn: str) -> None:
    with terminal(dsn, "top", columns=80, lines=24) as shown:
        before = shown.modes()
        shown.until("LANE")
        assert shown.modes() != before
        shown.type("q")
        assert shown.wait() == 0
        assert shown.modes() == before


def test_top_once_prints_one_frame(dsn: str, factory: JobFactory) -> None:
    factory.failed("ingestion")
    with terminal(dsn, "--no-color", "top", "--once", columns=80, lines=24) as shown:
        assert shown.wait() == 0
    lane = re.search(r"^interactive +(\S+) +(\S+) +(\S+) +(\S+) ", shown.seen, re.MULTILINE)
    assert lane is not None
    assert lane.groups() == ("0/2", "0", "-", "1")
    assert "quit" not in shown.seen
    assert "every" not in shown.seen


def test_top_doctor_and_workers_count_those_that_run_jobs(run: Run, factory: JobFactory) -> None:
    factory.register()
    factory.conn.execute("update laneway.workers set concurrency = 0")
    assert "workers: 0 alive, 0/0 running" in run("top", "--once").stdout
    assert "no live workers" in run("admin", "workers").stdout
    assert "no worker is alive" in run("doctor").stdout
    factory.conn.execute("update laneway.workers set concurrency = 4")
    assert "workers: 1 alive, 0/4 running" in run("top", "--once").stdout
    shown = run("admin", "workers").stdout
    assert "BUSY" in shown
    assert "no live workers" not in shown
    assert " 1 alive, " in run("doctor").stdout


def status(factory: JobFactory, job_id: UUID) -> str:
    found: Any = factory.conn.execute(
        "select status from laneway.jobs_view where id = %s", [job_id]
    ).fetchone()
    return str(found[0])


def test_top_names_a_wait_for_a_lock_as_what_it_is(
    run: Run, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANEWAY_STATEMENT_TIMEOUT", "1")
    with factory.conn.transaction():
        factory.conn.execute("lock table laneway.worker_lanes")
        shown = " ".join(run("top", "--once").stdout.split())
    assert "a statement waited too long" in shown
    assert "database unavailable" not in shown
    assert "laneway doctor" in shown
