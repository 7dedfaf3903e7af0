"""The example of Django: tasks in its own transactions, a worker, commands and the admin."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from tests.integrations.examples.programs import (
    PATIENCE_S,
    Environment,
    Program,
    client_of,
    free_port,
    until,
)

pytestmark = pytest.mark.integration

ENVIRONMENTS = ["django-5", "django-6"]


@pytest.fixture(params=ENVIRONMENTS)
def shop(request: pytest.FixtureRequest, empty_dsn: str, tmp_path: Path) -> Environment:
    """The shop on a database that its own commands have migrated."""
    found = Environment(request.param, "django", tmp_path, DATABASE_URL=empty_dsn)
    found.run("manage.py", "migrate")
    found.run("manage.py", "laneway", "db", "migrate")
    return found


@contextmanager
def serving(shop: Environment, **more: str) -> Iterator[httpx2.Client]:
    port = free_port()
    with (
        shop.start("manage.py", "runserver", "--noreload", f"127.0.0.1:{port}", more=more) as it,
        client_of(it, port) as client,
    ):
        yield client


@contextmanager
def working(shop: Environment, *options: str, **more: str) -> Iterator[Program]:
    with shop.start("manage.py", "laneway_worker", *options, more=more) as program:
        program.wait_for("serves")
        yield program
        assert program.stop() == 0


def post(client: httpx2.Client, path: str) -> dict[str, Any]:
    answer = client.post(path)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def ended(client: httpx2.Client, name: str, task: str) -> dict[str, Any]:
    """The result of a task, once it has ended."""

    def look() -> dict[str, Any] | None:
        answer = client.get(f"/tasks/{name}/{task}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found if found["status"] in ("SUCCESSFUL", "FAILED") else None

    result = until(look)
    assert result is not None
    return result


def rows(dsn: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, application_name="tests") as conn:
        return conn.execute(query.encode()).fetchall()


def test_tasks_of_views_run_in_the_worker(shop: Environment, empty_dsn: str) -> None:
    with serving(shop) as client:
        enqueue_in_transactions(client, empty_dsn)
        with working(shop, "--concurrency", "4") as worker:
            run_enqueued_receipt(client, empty_dsn)
            run_async_task_with_context(client)
            run_in_another_queue(client, empty_dsn)
            fail_after_retry(client, worker)
            keep_delayed_task(client)
            run_schedule_of_a_task(shop, empty_dsn)
        follow_link_in_admin(shop, client)


def enqueue_in_transactions(client: httpx2.Client, dsn: str) -> None:
    """A task is part of the transaction that enqueues it."""
    post(client, "/orders/nothing")
    assert rows(dsn, "select job_type from laneway.jobs_view") == []
    made = post(client, "/orders/book")
    assert made["status"] == "READY"
    assert rows(dsn, "select id::text, priority, status from laneway.jobs_view") == [
        (made["task"], 10, "approved")
    ]
    assert client.get(f"/tasks/send_receipt/{made['task']}").json()["status"] == "READY"


def run_enqueued_receipt(client: httpx2.Client, dsn: str) -> None:
    [(task,)] = rows(dsn, "select id from laneway.jobs_view")
    assert ended(client, "send_receipt", task) == {
        "status": "SUCCESSFUL", "value": "receipt for book", "attempts": 1, "errors": [],
        "queue": "mail", "priority": 10,
    }  # fmt: skip
    assert rows(dsn, "select receipt from shop_order") == [("receipt for book",)]
    assert rows(dsn, "select job_type, lane from laneway.jobs_view") == [
        ("shop.tasks.send_receipt", "outgoing-mail")
    ]


def run_async_task_with_context(client: httpx2.Client) -> None:
    counted = ended(client, "count_orders", post(client, "/tasks/count_orders")["task"])
    assert counted["value"] == {"orders": 1, "attempt": 1}


def run_in_another_queue(client: httpx2.Client, dsn: str) -> None:
    moved = post(client, "/tasks/count_orders?queue=mail")["task"]
    assert ended(client, "count_orders", moved)["queue"] == "mail"
    assert rows(dsn, f"select lane from laneway.jobs_view where id = '{moved}'") == [
        ("outgoing-mail",)
    ]


def fail_after_retry(client: httpx2.Client, worker: Program) -> None:
    failed = ended(client, "refuse", post(client, "/tasks/refuse?reason=sold%20out")["task"])
    assert (failed["status"], failed["attempts"]) == ("FAILED", 2)
    assert failed["errors"] == ["shop.models.Order.DoesNotExist"] * 2


def keep_delayed_task(client: httpx2.Client) -> None:
    later = post(client, "/tasks/count_orders?delay=3600")["task"]
    ended(client, "count_orders", post(client, "/tasks/count_orders")["task"])
    assert client.get(f"/tasks/count_orders/{later}").json()["status"] == "READY"


def run_schedule_of_a_task(shop: Environment, dsn: str) -> None:
    """Without a payload: the task has no arguments."""
    shop.run("manage.py", "laneway", "schedules", "run", "weekly-count")
    found = "select status from laneway.jobs_view where payload = '{}'"
    until(lambda: rows(dsn, found) == [("completed",)], lambda: rows(dsn, found))


def follow_link_in_admin(shop: Environment, client: httpx2.Client) -> None:
    shop.run(
        "manage.py", "createsuperuser", "--noinput", "--username=ann", "--email=ann@example.com",
        DJANGO_SUPERUSER_PASSWORD="correct horse",
    )  # fmt: skip
    assert client.get("/admin/laneway/dashboard/").headers["location"].startswith("/admin/login/")
    form = client.get("/admin/login/?next=/admin/")
    login = {"username": "ann", "password": "correct horse", "next": "/admin/"}
    login["csrfmiddlewaretoken"] = client.cookies["csrftoken"]
    page = client.post(form.url, data=login, follow_redirects=True)
    assert "/admin/laneway/dashboard/" in page.text
    link = client.get("/admin/laneway/dashboard/")
    assert (link.status_code, link.headers["location"]) == (302, "http://127.0.0.1:8420/ui/")


CUT = """
select pg_terminate_backend(pid, 60000) from pg_stat_activity
 where datname = current_database() and pid <> pg_backend_pid() and application_name !~ '^laneway'
"""


def test_handler_does_not_inherit_a_broken_connection(shop: Environment, empty_dsn: str) -> None:
    """Django's connection belongs to a thread of the worker, which outlives jobs."""

    def write_receipts() -> str:
        submit = ("laneway", "jobs", "submit", "write_receipts", "--max-retries", "0")
        job = shop.run("manage.py", *submit).strip()
        found = f"select status, result::text from laneway.jobs_view where id = '{job}'"

        def ended() -> bool:
            return rows(empty_dsn, found)[0][0] in ("completed", "failed")

        until(ended, lambda: rows(empty_dsn, found))
        [(status, result)] = rows(empty_dsn, found)
        return f"{status} {result}"

    with working(shop, "--threads", "1"):
        assert write_receipts() == 'completed {"written": 0}'
        rows(empty_dsn, CUT)
        assert write_receipts() == 'completed {"written": 0}'


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_worker_that_cannot_start_says_what_to_do(
    environment: str, empty_dsn: str, tmp_path: Path
) -> None:
    """Exit codes are those of `laneway worker`: a supervisor decides by them."""
    shop = Environment(environment, "django", tmp_path, DATABASE_URL=empty_dsn)
    (tmp_path / "taskless.py").write_text("from shop.settings import *\nTASKS = {}\n", "utf-8")
    other = {"DJANGO_SETTINGS_MODULE": "taskless", "PYTHONPATH": str(tmp_path)}
    cure = "LanewayBackend'"

    for command, more, code, text in (
        (("laneway_worker",), {}, 5, "run `manage.py laneway db migrate`"),
        (("laneway_worker",), other, 2, cure),
        (("laneway", "jobs", "ls"), other, 2, cure),
    ):
        with shop.start("manage.py", *command, more=more) as program:
            assert program.process.wait(PATIENCE_S) == code, program.output
            assert program.output.strip().splitlines()[-1].endswith(text)
            assert "Traceback" not in program.output


def test_tests_of_the_shop_pass(shop: Environment, dsn: str) -> None:
    """With the pytest plugin and Django's tables in its database."""
    shop.run("-m", "pytest", "-q", "-p", "no:cacheprovider", LANEWAY_TEST_DATABASE_URL=dsn)


CLASSES = """
from laneway.domain.job_error import JobError
from laneway.integrations.django.results import error_of
local = "Traceback (most recent call last):\\ntasks.run.<locals>.Odd: of no module"
for error in ("WorkerLost", "gone"), ("StaleAttempt", "late"), ("Odd", "odd", local):
    print(error_of(JobError(*error)).exception_class.__name__)
"""


ENDS = """
from types import SimpleNamespace
from laneway import Cancel, Retry, Snooze
from laneway.integrations.django.attempts import handler_of
from laneway.integrations.django.framework import task_finished
from laneway.integrations.django.results import new_result

def run():
    raise error

class Backend:
    def get_result(self, result_id):
        return new_result(task, result_id, "default", {"args": [], "kwargs": {}})

def receive(sender, task_result, **more):
    seen.append(task_result.status.name)

task = SimpleNamespace(func=run, takes_context=False, module_path="tasks.run")
task_finished.connect(receive)
for error in Retry(after=1), ValueError(), Snooze(1), Cancel():
    for is_last in False, True:
        seen = []
        try:
            handler_of(task, Backend())(SimpleNamespace(job_id="1", is_last_attempt=is_last))
        except type(error):
            print(type(error).__name__, is_last, *seen)
"""


def test_last_failure_of_a_task_is_signalled(shop: Environment) -> None:
    """Also one by Retry, which fails the job once no retry is left."""
    shown = shop.run("manage.py", "shell", "-v", "0", "-c", ENDS)
    assert shown.splitlines() == [
        "Retry False", "Retry True FAILED", "ValueError False", "ValueError True FAILED",
        "Snooze False", "Snooze True", "Cancel False", "Cancel True",
    ]  # fmt: skip


def test_every_error_of_a_result_has_a_class(shop: Environment) -> None:
    """Also those that no handler raised, as when a worker dies."""
    shown = shop.run("manage.py", "shell", "-v", "0", "-c", CLASSES)
    assert shown.split() == ["LanewayError", "StaleAttempt", "Exception"]


def test_tasks_are_submitted_after_commit_to_another_database(
    shop: Environment, dsn: str, empty_dsn: str
) -> None:
    more = {"JOBS_DATABASE_URL": dsn}
    with serving(shop, **more) as client, working(shop, **more):
        made = post(client, "/tasks/count_orders")["task"]
        assert ended(client, "count_orders", made)["value"]["orders"] == 0
        # The view reads the result before the commit, when the job does not exist yet.
        assert client.post("/orders/book").status_code == 500
        assert rows(dsn, "select job_type from laneway.jobs_view") == [("shop.tasks.count_orders",)]
    assert rows(empty_dsn, "select count(*) from laneway.jobs") == [(0,)]


def test_empty_database_url_means_the_database_of_django(shop: Environment, empty_dsn: str) -> None:
    """As an unset variable of the environment gives it: tasks stay in Django's transaction."""
    with serving(shop, JOBS_DATABASE_URL="") as client:
        enqueue_in_transactions(client, empty_dsn)


CURRENT_USER = """
import psycopg
from laneway.integrations.django.database import dsn_of
with psycopg.connect(dsn_of("default")) as conn:
    print(*conn.execute("select current_user").fetchone(), sep="")
"""


def test_laneway_assumes_the_role_that_django_assumes(
    shop: Environment, empty_dsn: str, tmp_path: Path
) -> None:
    role = f"shop owner {uuid4().hex}"
    (tmp_path / "assumed.py").write_text(
        "from shop.settings import *\n"
        f'DATABASES["default"]["OPTIONS"] = {{"assume_role": {role!r}}}\n',
        "utf-8",
    )
    with psycopg.connect(empty_dsn, autocommit=True) as conn:
        conn.execute(SQL("create role {}").format(Identifier(role)))
        try:
            seen = shop.run(
                "manage.py", "shell", "-v", "0", "-c", CURRENT_USER,
                DJANGO_SETTINGS_MODULE="assumed", PYTHONPATH=str(tmp_path),
            )  # fmt: skip
        finally:
            conn.execute(SQL("drop role {}").format(Identifier(role)))
    assert seen.strip() == role
