"""Laws of `--server`: every command says through a server what it says on a database."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
import pytest

from laneway.cli.backends.server import ServerBackend
from laneway.cli.server_doctor import judge_clock, judge_version
from laneway.control.health_check import Finding, HealthCheck
from laneway.domain.approval import Analysis, Approval
from laneway.domain.token import new_secret
from laneway.errors import Refused
from laneway.http import AsyncClient
from laneway.http.models import Me
from laneway.store import handler_waits
from laneway.store.handler_waits import NewWait
from tests.api.conftest import People
from tests.cli.conftest import invoke
from tests.conftest import Server
from tests.http.scripted_server import JOB, ScriptedServer, answer, job
from tests.http.threaded_server import served
from tests.support.job_factory import JobFactory

_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?")
_CLOCK = re.compile(r"\d\d:\d\d:\d\d")
_SPAN = re.compile(r"\b(?:\d+(?:\.\d+)?(?:ms|s)|\d+m\d\ds|\d+h\d\dm)\b|(?<=_s\": )\d+\.\d+")
_SECRET = re.compile(r"\blw[a-z]*_[\w-]+")
# Only a server has them.
_CLAIMED = re.compile(r"(?<=  )(actor, )?door$|(?<=\"claimed\": \[)[^\]]*", re.MULTILINE)
_OF_SERVERS = re.compile(r'"(principal_id|request_id|address)": [^,}]+')


ME = Me(UUID(int=1), "ann", "person", {}, None)


class CommandResult(NamedTuple):
    """The result of a command."""

    args: tuple[str, ...]
    code: int
    stdout: str
    stderr: str


class CommandRunner:
    """Runs commands one way; replaces the ids in their output by names."""

    def __init__(
        self, dsn: str, factory: JobFactory, options: list[str], env: dict[str, str]
    ) -> None:
        self.factory = factory
        self.dsn = dsn
        self._options = options
        self._env = env
        self._names: dict[str, str] = {}

    def __call__(self, *args: object, input: str | None = None) -> CommandResult:  # noqa: A002
        found = invoke(*self._options, *args, input=input, env=self._env)
        shown = tuple(self._plain(str(arg)) for arg in args)
        out, err = self._plain(found.stdout), self._plain(found.stderr)
        return CommandResult(shown, found.exit_code, out, err)

    def ids(self, *args: object) -> list[str]:
        """The ids that a command shows, as it shows them."""
        found = invoke(*self._options, *args, env=self._env)
        return _UUID.findall(found.stdout)

    def _plain(self, text: str) -> str:
        text = _OF_SERVERS.sub(r'"\1": …', _CLAIMED.sub("…", text))
        for pattern, word in ((_SECRET, "<secret>"), (_TIME, "<time>"), (_CLOCK, "<clock>")):
            text = pattern.sub(word, text)
        text = _UUID.sub(lambda found: self._name(found[0]), _SPAN.sub("<span>", text))
        return re.sub(r"  +", "  ", text)

    def _name(self, found: str) -> str:
        return self._names.setdefault(found, f"<{len(self._names)}>")


@pytest.fixture
def runners(
    postgres: Server, template_db: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[CommandRunner]]:
    """The same world twice: one asked on its database, one through a server."""
    for name in ("LANEWAY_DEBUG", "LANEWAY_DATABASE_URL", "LANEWAY_SERVER", "LANEWAY_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with (
        postgres.database(template_db) as one,
        postgres.database(template_db) as other,
        psycopg.connect(one, autocommit=True, application_name="tests") as here,
        psycopg.connect(other, autocommit=True, application_name="tests") as there,
        served(other) as url,
    ):
        People(here).new("admin", "platform_admin")
        admin = People(there).new("admin", "platform_admin")
        yield [
            CommandRunner(one, JobFactory(here), ["--by", "admin"], {"LANEWAY_DATABASE_URL": one}),
            CommandRunner(
                other, JobFactory(there), [], {"LANEWAY_SERVER": url, "LANEWAY_TOKEN": admin.token}
            ),
        ]
        monkeypatch.delenv("LANEWAY_DATABASE_URL", raising=False)


Story = Callable[[CommandRunner], Iterator[CommandResult]]


def jobs(run: CommandRunner) -> Iterator[CommandResult]:
    """Submit, look, decide, operate."""
    factory = run.factory
    factory.publish("greet", '{"type": "object", "properties": {"n": {"type": "integer"}}}')
    yield run("jobs", "submit", "greet", '{"n": 1}', "--priority", 5, "--tag", "a", "--json")
    yield run("jobs", "submit", "greet", "--unique-key", "k", "--delay", "1h")
    yield run("jobs", "submit", "greet", "--unique-key", "k", "--json")
    yield run("jobs", "submit", "unheard")
    yield run("jobs", "submit", "greet", '{"n": "x"}')
    yield run("jobs", "submit", "greet", "--priority", 10**6)
    done, failed, running = (
        factory.completed("quick"),
        factory.failed("bad"),
        factory.running("slow"),
    )
    waiting = factory.submit("later")
    yield run("jobs", "ls")
    yield run("jobs", "ls", "--json", "--type", "greet", "--limit", 1)
    yield run("jobs", "ls", "--status", "failed", "--since", "1h")
    yield run("jobs", "ls", "--limit", 201)
    yield run("jobs", "ls", "--cursor", "x")
    yield run("jobs", "ls", "--tag", "nothing")
    yield run("jobs", "ls", "--lane", "typo")
    yield run("jobs", "cancel", "--lane", "typo", "--dry-run")
    for job_id in (done, failed, running.job_id, UUID(int=1)):
        yield run("jobs", "show", job_id)
        yield run("jobs", "show", job_id, "--json")
        yield run("jobs", "explain", job_id)
    yield run("jobs", "explain", waiting, "--json")
    yield run("jobs", "reprioritize", waiting, 7, "--json")
    yield run("jobs", "reprioritize", failed, 7)
    yield run("jobs", "reprioritize", waiting, 10**6)
    yield run("jobs", "run-now", factory.submit("later", delay=3600), waiting, done)
    yield run("jobs", "run-now", factory.submit("later", delay=3600), "--json")
    yield run("jobs", "cancel", waiting, running.job_id, done, UUID(int=1), "--reason", "enough")
    yield run("jobs", "retry", waiting, "--json")
    yield run("jobs", "retry", done)
    yield run("jobs", "delete", waiting, "--yes")
    yield run("jobs", "delete", done, "--dry-run")
    yield run("jobs", "delete", done, "--yes", "--json")
    yield run("jobs", "delete", done, "--yes")


def approvals(run: CommandRunner) -> Iterator[CommandResult]:
    """Jobs that await approval."""
    run.factory.publish("costly", has_analysis=True, approval=Approval())
    output = Analysis(plan="much", cost=3, currency="EUR", warnings=["dear"])
    first, second, third = (run.factory.analyzed(output) for _ in range(3))
    yield run("jobs", "ls", "--status", "awaiting_approval")
    yield run("jobs", "approve", first, "--seal", "wrong")
    yield run("jobs", "approve", first, "--comment", "fine")
    yield run("jobs", "reject", second, "--reason", "dear", "--json")
    yield run("jobs", "show", second)
    yield run("jobs", "approve", second)
    yield run("jobs", "approve", "--type", "costly", "--max-cost", 5, "--unit", "EUR", "--yes")
    yield run("jobs", "show", third, "--json")


def bulk(run: CommandRunner) -> Iterator[CommandResult]:
    """One verb on many jobs."""
    for _ in range(3):
        run.factory.submit("greet")
    run.factory.failed("bad")
    run.factory.running("long")
    yield run("jobs", "cancel", "--type", "long", "--yes")
    yield run("jobs", "cancel", "--type", "long", "--status", "running", "--yes", "--json")
    yield run("jobs", "cancel", "--type", "greet", "--dry-run")
    yield run("jobs", "cancel", "--type", "greet", "--dry-run", "--json")
    yield run("jobs", "reprioritize", "--type", "greet", "--priority", 3, "--yes", "--json")
    yield run("jobs", "cancel", "--type", "greet", "--yes", "--reason", "enough")
    yield run("jobs", "cancel", "--type", "greet", "--yes")
    yield run("jobs", "retry", "--all", "--yes", "--json")
    yield run("jobs", "retry", "--status", "running", "--yes")
    yield run("jobs", "delete", "--status", "cancelled")
    yield run("jobs", "delete", "--status", "cancelled", "--yes")


def lanes(run: CommandRunner) -> Iterator[CommandResult]:
    """Lanes, the gate, freezing, and what operators look at."""
    run.factory.register()
    run.factory.running("ingestion")
    run.factory.submit("ingestion")
    yield run("lanes", "create", "video", "--max-slots", "unbounded", "--json")
    yield run("lanes", "create", "video")
    yield run("lanes", "create", "Bad Name")
    yield run("lanes", "set", "video", "--max-slots", 3)
    yield run("lanes", "set", "video", "--max-slots", 3, "--json")
    yield run("lanes", "set", "video", "--max-slots", 3, "--job-types", "cut,encode")
    yield run("lanes", "set", "video")
    yield run("lanes", "set", "missing", "--max-slots", 3)
    yield run("lanes", "set", "video", "--lease-seconds", 1)
    yield run("lanes", "set", "video", "--job-types", "ingestion")
    yield run("lanes", "drain", "video", "--json")
    yield run("lanes", "resume", "video")
    yield run("lanes", "move", "encode", "video", "--json")
    yield run("lanes", "move", "polarity", "default")
    yield run("lanes", "move", "encode", "missing")
    yield run("lanes", "of", "encode")
    yield run("lanes", "of", "never heard of", "--json")
    yield run("lanes", "of", "")
    yield run("lanes", "ls")
    yield run("lanes", "show", "interactive")
    yield run("lanes", "show", "interactive", "--json")
    yield run("lanes", "show", "missing")
    yield run("lanes", "show", "Bad Name")
    yield run("admin", "workers", "lanes", "--json")
    yield run("pause")
    yield run("admin", "workers")
    yield run("top", "--once", "--json")
    yield run("resume")
    yield run("admin", "workers", "drain", "host:1")
    yield run("admin", "workers", "drain", run.factory.worker_id, "--json")
    yield run("admin", "workers")
    yield run("admin", "workers", "resume", "host:1")
    yield run("admin", "workers", "resume", "missing")
    yield run("admin", "workers", "drain", UUID(int=7))
    yield run("lanes", "history")
    yield run("lanes", "history", "video", "--limit", 2, "--json")
    yield run("lanes", "history", "--limit", 2, "--before", 9)
    yield run("lanes", "history", "--limit", 0)
    yield run("lanes", "rollback", "video")
    yield run("lanes", "rollback", "video", "--to", 10**9)
    yield run("freeze", "video")
    yield run("freeze", "interactive", "--deadline", 0, "--json")
    yield run("freeze", "system", "interactive", "--deadline", 0, "--or-thaw")
    yield run("freeze", "missing")
    yield run("lanes", "ls")
    yield run("thaw", "maintenance")
    yield run("thaw", "video", "--json")
    yield run("thaw")
    yield run("thaw")
    yield run("lanes", "load", "plain", "--dry-run")
    yield run("lanes", "load", "plain", "--json")
    yield run("lanes", "load", "plain")
    yield run("lanes", "load", "-", input='{"docs": {"job_types": ["ingestion"]}}')
    yield run("lanes", "load", "-", input='{"docs": {"max_slots": -1}}')
    yield run("lanes", "load", "missing.toml")
    yield run("lanes", "ls")


def figures(run: CommandRunner) -> Iterator[CommandResult]:
    """Counts of jobs, failures and job types."""
    factory = run.factory
    yield run("admin", "workers", "types")
    yield run("admin", "failures")
    factory.publish(
        "ingestion", limits=("openai",), approval=Approval(below_cost=5, currency="EUR")
    )
    factory.publish("old")
    factory.register(("ingestion",))
    factory.failed("bad")
    factory.failed("bad")
    factory.completed("quick")
    factory.submit("quick")
    yield run("jobs", "counts")
    yield run("jobs", "counts", "--type", "quick", "--json")
    yield run("jobs", "counts", "--lane", "system", "--since", "1h")
    yield run("jobs", "counts", "--status", "failed")
    yield run("admin", "workers", "types")
    yield run("admin", "workers", "types", "--lane", "interactive", "--json")
    yield run("admin", "workers", "types", "--lane", "Bad Name")
    yield run("admin", "workers", "publishers")
    for application in ("shop", "old shop"):
        factory.publish("refund", application=application)
    yield run("admin", "workers", "publishers")
    yield run("admin", "workers", "publishers", "--type", "refund", "--json")
    yield run("admin", "workers", "publishers", "--stale")
    yield run("admin", "workers", "forget-publisher", "old shop", "--type", "pay")
    yield run("admin", "workers", "forget-publisher", "old shop", "--type", "refund")
    yield run("admin", "workers", "forget-publisher", "shop", "--json")
    yield run("admin", "workers", "forget-publisher", "shop")
    yield run("admin", "failures")
    yield run("admin", "failures", "--type", "bad", "--window", "1d", "--json")
    yield run("admin", "failures", "--window", "2d")


def limits(run: CommandRunner) -> Iterator[CommandResult]:
    """Limits and their history."""
    yield run("limits", "ls")
    yield run("limits", "set", "gpu", "--rate", "60/1m", "--json")
    yield run("limits", "set", "gpu", "--max-concurrent", 2)
    yield run("limits", "set", "gpu")
    yield run("limits", "set", "gpu", "--scope", "moon")
    yield run("limits", "set", "openai", "--max-concurrent", "unbounded")
    yield run("limits", "ls", "--json")
    yield run("limits", "history", "gpu", "--json")
    yield run("limits", "history")
    yield run("limits", "history", "missing")
    yield run("limits", "delete", "gpu")
    yield run("limits", "delete", "gpu")
    yield run("limits", "rollback", "gpu", "--json")
    yield run("limits", "rollback", "missing")


def webhooks(run: CommandRunner) -> Iterator[CommandResult]:
    """Webhooks, whose secrets are given: generated ones differ."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"
    erp = ("webhooks", "set", "erp")
    yield run(*erp)
    yield run(*erp, "--timeout-s", 5)
    yield run(*erp, "--url", "https://example.com/", "--secret-file", "-", "--json", input=secret)
    yield run(*erp, "--events", "job.failed", "--tags", "a,b")
    yield run(*erp, "--url", "ftp://example.com/")
    yield run("webhooks", "ls")
    yield run("webhooks", "show", "erp")
    yield run("webhooks", "disable", "erp")
    yield run("webhooks", "enable", "erp", "--json")
    yield run("webhooks", "test", "missing")
    yield run("webhooks", "rotate", "missing")
    yield run("webhooks", "delete", "erp")
    yield run("webhooks", "delete", "erp")


def flows(run: CommandRunner) -> Iterator[CommandResult]:
    """Flows, jobs after others, a handler that sleeps and one that waits for an event."""
    factory, flow = run.factory, UUID(int=7)
    factory.conn.execute("select laneway.create_flow(%s, 'nightly', p_tags => '{a}')", [flow])
    page, join, nap, talk = (UUID(int=n) for n in range(8, 12))
    added = "select laneway.submit(%s, id => %s, flow => %s, after => %s, created_by => 'ann')"
    for name, job_id, after in (
        ("page", page, None), ("join", join, [page]), ("nap", nap, None), ("talk", talk, None),
    ):  # fmt: skip
        factory.conn.execute(added, [name, job_id, flow, after])
    for name, wait in (
        ("nap", NewWait("night", "sleep", 3600.0)),
        ("talk", NewWait("go", "event", None, "go", "k")),
    ):
        (claim,) = factory.claim(name)
        assert factory.run(handler_waits.begin(claim, wait)).state == "open"
        factory.settle(claim, "wait", result=wait.name)
    yield run("flows", "ls")
    yield run("flows", "ls", "--json", "--tag", "a", "--status", "running", "--limit", 1)
    yield run("flows", "ls", "--name", "other")
    yield run("flows", "ls", "--status", "asleep")
    for options in ((), ("--json",), ("--mermaid",)):
        yield run("flows", "show", flow, *options)
    yield run("flows", "show", UUID(int=1))
    for job_id in (join, nap, talk):
        yield run("jobs", "show", job_id)
        yield run("jobs", "show", job_id, "--json")
        yield run("jobs", "explain", job_id)
    yield run("jobs", "ls", "--flow", flow, "--status", "waiting")
    yield run("jobs", "submit", "late", "--after", page, "--after-failure", "hold", "--json")
    yield run("jobs", "submit", "late", "--after", UUID(int=1))
    yield run("jobs", "submit", "late", "--after-failure", "hold")
    yield run("jobs", "reprioritize", "--flow", flow, "--priority", 3, "--yes")
    yield run("jobs", "run-now", join)
    yield run("jobs", "run-now", talk)
    yield run("jobs", "run-now", "--flow", flow, "--dry-run")
    yield run("jobs", "run-now", "--flow", flow, "--yes")
    yield run("events", "send", "go", '{"by": "ann"}', "--key", "k")
    yield run("events", "send", "go", "--key", "k", "--retention", "10m", "--json")
    yield run("events", "send", "go", "yes")
    yield run("jobs", "show", talk)
    yield run("flows", "cancel", flow, "--reason", "not today")
    yield run("flows", "cancel", flow, "--json")
    yield run("flows", "watch", flow)
    yield run("flows", "retry", flow)
    yield run("flows", "retry", flow)
    yield run("flows", "cancel", UUID(int=1))
    yield run("flows", "retry", UUID(int=1))
    yield run("flows", "watch", UUID(int=1))


def schedules(run: CommandRunner) -> Iterator[CommandResult]:
    """Schedules, their slots and their history."""
    yield run("schedules", "set", "nightly", "--type", "greet", "--cron", "0 3 * * *", "--json")
    yield run("schedules", "set", "nightly", "--priority", 3, "--tag", "a")
    yield run("schedules", "set", "nightly")
    yield run("schedules", "set", "other", "--type", "greet")
    yield run("schedules", "set", "nightly", "--cron", "never")
    yield run("schedules", "ls")
    yield run("schedules", "run", "nightly", "--json")
    yield run("schedules", "run", "missing")
    yield run("schedules", "show", "nightly")
    yield run("schedules", "show", "nightly", "--json")
    yield run("schedules", "slots", "nightly", "--limit", 1)
    yield run("schedules", "slots", "nightly", "--before", "2020-01-01T00:00:00Z", "--json")
    yield run("schedules", "disable", "nightly")
    yield run("schedules", "enable", "nightly", "--json")
    yield run("schedules", "enable", "missing")
    yield run("schedules", "history", "--json")
    yield run("schedules", "history", "nightly")
    yield run("schedules", "rollback", "nightly")
    yield run("schedules", "delete", "nightly")
    yield run("schedules", "delete", "nightly")


def access(run: CommandRunner) -> Iterator[CommandResult]:
    """Principals, roles, tokens, and the audit of it all."""
    yield run("principals", "create", "ann", "--json")
    yield run("principals", "create", "ann")
    yield run("principals", "create", "bot", "--kind", "robot")
    yield run("principals", "ls")
    yield run("roles", "create", "reader", "--permissions", "jobs:read")
    yield run("roles", "create", "other", "--permissions", "jobs:fly")
    yield run("roles", "set", "reader", "--permissions", "jobs:read,audit:read", "--json")
    yield run("roles", "ls")
    yield run("roles", "grant", "ann", "reader", "--scope", "workspace", "--workspace", "w")
    yield run("roles", "grant", "ann", "reader", "--scope", "workspace")
    yield run("roles", "grant", "ann", "reader", "--scope", "all", "--lanes", "default,typo")
    yield run("tokens", "create", "ann", "--name", "narrow", "--lanes", "typo")
    yield run("roles", "grants", "--principal", "ann")
    (grant_id,) = run.ids("roles", "grants", "--principal", "ann", "--json")
    yield run("roles", "revoke", grant_id, "--json")
    yield run("roles", "revoke", grant_id)
    yield run("roles", "delete", "reader")
    yield run("roles", "delete", "viewer")
    yield run("tokens", "create", "ann", "--name", "laptop", "--expires-in", "1d", "--json")
    yield run("tokens", "create", "ann", "--name", "other", "--expires-in", "never")
    yield run("tokens", "create", "missing", "--name", "x")
    yield run("tokens", "ls", "--principal", "ann")
    token_id = run.ids("tokens", "ls", "--principal", "ann", "--json")[0]
    yield run("tokens", "revoke", token_id)
    yield run("tokens", "revoke", token_id)
    yield run("tokens", "ls", "--principal", "ann", "--json")
    yield run("principals", "disable", "ann")
    yield run("principals", "enable", "ann", "--json")
    yield run("principals", "enable", "missing")
    yield run("audit", "--limit", 5)
    yield run("audit", "--json", "--action", "token.created", "--since", "1h")
    yield run("audit", "--door", "cli", "--kind", "access", "--limit", 1)
    yield run("audit", "--door", "window")
    yield run("audit", "--since", "2200-01-01T00:00:00Z")


def following(run: CommandRunner) -> Iterator[CommandResult]:
    """A job that has ended is followed to its end at once."""
    done, failed = run.factory.completed(), run.factory.failed("bad")
    yield run("jobs", "watch", done)
    yield run("jobs", "watch", failed, "--json")
    yield run("jobs", "watch", UUID(int=1))


STORIES: list[Story] = [
    jobs, approvals, bulk, flows, lanes, figures, limits, webhooks, schedules, access, following,
]  # fmt: skip


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_server_and_database_give_same_output(runners: list[CommandRunner], story: Story) -> None:
    here, there = (list(story(run)) for run in runners)
    assert [output.args for output in here] == [output.args for output in there]
    differing = [pair for pair in zip(here, there, strict=True) if not _alike(*pair)]
    assert not differing, "\n".join(f"{a}\n{b}\n" for a, b in differing)


def _alike(here: CommandResult, there: CommandResult) -> bool:
    if here.code == there.code == 2:
        # Which rule is broken first, and its words, are each door's own.
        return here.stdout == there.stdout == "" and bool(there.stderr)
    return here == there


# -- what only a server has -------------------------------------------------------------------


@pytest.mark.parametrize("command", ["db status", "worker app:lw", "server", "up app:lw", "demo",
                                     "bench", "principals login ann"])  # fmt: skip
def test_database_only_commands_report_it(command: str) -> None:
    found = invoke("--server", "http://localhost:1", *command.split())
    assert (found.exit_code, found.stdout) == (2, "")
    assert "database" in found.stderr


@pytest.mark.parametrize(
    "args,listed",
    [
        (["--by", "ann", "pause"], "--by needs a database"),
        (["--database-url", "postgresql://x", "pause"], "not both"),
        (["--token", "é", "pause"], "--token (LANEWAY_TOKEN): must be"),
    ],
)
def test_database_only_options_are_refused_with_server(args: list[str], listed: str) -> None:
    found = invoke("--server", "http://localhost:1", *args)
    assert found.exit_code == 2
    assert listed in found.stderr


def test_server_that_is_not_there_is_unreachable() -> None:
    found = invoke("--server", "http://127.0.0.1:1", "--token", "lw_x", "lanes", "ls")
    assert (found.exit_code, found.stdout) == (5, "")
    assert "cannot be reached" in found.stderr
    assert "start it with `laneway server`, or correct --server (LANEWAY_SERVER)" in found.stderr


def test_database_that_is_not_there_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANEWAY_DATABASE_URL", "postgresql://127.0.0.1:1/none")
    found = invoke("lanes", "ls")
    assert (found.exit_code, found.stdout) == (5, "")
    assert "start PostgreSQL there, or correct LANEWAY_DATABASE_URL" in found.stderr


def test_token_does_not_go_where_others_can_read_it() -> None:
    found = invoke("--server", "http://jobs.example.org", "--token", "lw_hidden", "lanes", "ls")
    assert found.exit_code == 2
    assert "--server: must be https" in found.stderr
    assert "--allow-insecure" in found.stderr
    assert "lw_hidden" not in found.stderr


def test_missing_token_error_names_its_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANEWAY_TOKEN_FILE", raising=False)
    for given in ({}, {"LANEWAY_TOKEN": " "}):
        found = invoke("--server", "http://127.0.0.1:1", "lanes", "ls", env=given)
        assert found.exit_code == 2
        for way in ("LANEWAY_TOKEN ", "LANEWAY_TOKEN_FILE", "--token"):
            assert way in found.stderr
    assert invoke("--server", "http://127.0.0.1:1", "lanes", "ls", "--help").exit_code == 0


@pytest.mark.parametrize("command", ["lanes ls", "mcp"])
def test_trailing_blank_of_token_is_removed_and_token_hidden(command: str) -> None:
    for token in ("lw_hidden ", "lw_hidden\n", "lw_hidden it"):
        env = {"LANEWAY_SERVER": "http://127.0.0.1:1", "LANEWAY_TOKEN": token}
        found = invoke(*command.split(), env=env)
        assert found.exit_code == (2 if "it" in token else 5)
        assert "lw_hidden" not in found.stderr


@pytest.mark.parametrize("held", ['{"id": 1, "token": "lw_hidden"}', '{"token":"lw_hidden"}', "\n"])
def test_file_that_holds_more_than_the_token_is_refused(
    held: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "token.json"
    kept.write_text(held)
    monkeypatch.setenv("LANEWAY_TOKEN_FILE", str(kept))
    found = invoke("--server", "http://127.0.0.1:1", "lanes", "ls")
    assert found.exit_code == 2
    assert "must contain only the token" in found.stderr
    assert "lw_hidden" not in found.stderr


@pytest.mark.parametrize("given", [["--token", "lw_hidden"], ["--allow-insecure"]])
def test_server_options_require_server(given: list[str]) -> None:
    found = invoke(*given, "lanes", "ls")
    assert found.exit_code == 2
    assert f"{given[0]} needs --server" in found.stderr
    assert "lw_hidden" not in found.stderr


@pytest.mark.parametrize("url", ["jobs.example.org", "ftp://x", "https://ann:hidden@x"])
def test_wrong_address_is_blamed_on_the_option_that_gave_it(url: str) -> None:
    found = invoke("--server", url, "--token", "lw_x", "lanes", "ls")
    assert found.exit_code == 2
    assert "--server: must" in found.stderr
    assert "base_url" not in found.stderr
    assert "hidden" not in found.stderr


async def test_job_cancelled_instead_is_not_reported_as_deleted() -> None:
    # A retry in between: to the server a waiting job is one to cancel.
    script = ScriptedServer(answer(200, job("cancelled")))
    async with AsyncClient("http://localhost", "lw_x", transport=script) as client:
        with pytest.raises(Refused, match="cancelled, not deleted"):
            await ServerBackend(client).delete(JOB)


def test_caller_without_permission_is_refused(
    dsn: str, factory: JobFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = factory.submit(created_by="another")
    viewer = People(factory.conn).new("viewer", "viewer")
    kept = tmp_path / "token"
    kept.write_text(f"{viewer.token}\n")
    monkeypatch.setenv("LANEWAY_TOKEN_FILE", str(kept))
    with served(dsn) as url:

        def run(*args: object, **env: str) -> Any:
            return invoke("--server", url, *args, env=env)

        assert json.loads(run("jobs", "show", job_id, "--json").stdout)["id"] == str(job_id)
        refused = run("jobs", "cancel", job_id)
        assert (refused.exit_code, refused.stdout) == (4, "")
        assert "jobs:cancel" in refused.stderr
        wrong = run("lanes", "ls", LANEWAY_TOKEN="lw_wrong")
        assert wrong.exit_code == 4
        assert "(the token is from LANEWAY_TOKEN;" in wrong.stderr
        typed = run("--token", "lw_wrong", "lanes", "ls", LANEWAY_TOKEN=viewer.token)
        assert "(the token is from --token;" in typed.stderr
        kept.write_text("lw_wrong\n")
        assert f"(the token is from LANEWAY_TOKEN_FILE ({kept});" in run("lanes", "ls").stderr
        kept.write_text(f"{viewer.token}\n")
        beside = invoke("--server", f"{url}/wrong", "lanes", "ls")
        assert (beside.exit_code, beside.stdout) == (1, "")
        assert f"no Laneway API at {url}/wrong" in beside.stderr
        kept.unlink()
        missing = run("lanes", "ls")
        assert missing.exit_code == 2
        assert "LANEWAY_TOKEN_FILE" in missing.stderr


def test_token_that_expires_soon_is_announced_once(dsn: str, factory: JobFactory) -> None:
    people = People(factory.conn)
    ann = people.new("ann", "submitter")
    people.expire(ann.token, days=2.5)
    with served(dsn) as url:
        env = {"LANEWAY_SERVER": url, "LANEWAY_TOKEN": ann.token}
        for args in (["jobs", "ls", "--json"], ["jobs", "submit", "greet", "-q"]):
            found = invoke(*args, env=env)
            assert found.exit_code == 0
            assert found.stderr.count("the token from LANEWAY_TOKEN expires in 2 days:") == 1
        fresh = {**env, "LANEWAY_TOKEN": people.token(ann.id)}
        assert "expires" not in invoke("jobs", "ls", "--json", env=fresh).stderr


def test_submitter_learns_the_nearest_type_of_its_own_jobs(dsn: str, factory: JobFactory) -> None:
    people = People(factory.conn)
    factory.publish("ingestion")
    factory.submit("ingestion", created_by="ann")
    ann, bob = people.new("ann", "submitter"), people.new("bob", "submitter")
    with served(dsn) as url:
        for who, near in ((ann, "; did you mean ingestion?"), (bob, "")):
            env = {"LANEWAY_SERVER": url, "LANEWAY_TOKEN": who.token}
            made = invoke("jobs", "submit", "ingestoin", env=env)
            text = f"no worker has published ingestoin yet: the job waits until one does{near}"
            assert made.stderr.splitlines() == [text]
            explained = invoke("jobs", "explain", made.stdout.strip(), env=env).stdout
            assert ("did you mean" in explained) == bool(near)


def doctor(url: str, token: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the checks of `laneway doctor` over a server, by name."""
    env = {"LANEWAY_SERVER": url, "LANEWAY_TOKEN": token}
    found = invoke("doctor", "--json", env=env)
    return found.exit_code, {one["name"]: one for one in map(json.loads, found.stdout.splitlines())}


def test_doctor_checks_a_server_over_http(dsn: str, factory: JobFactory) -> None:
    people = People(factory.conn)
    ops, ann = people.new("ops", "operator"), people.new("ann", "submitter")
    idle = people.new("idle")
    people.expire(ann.token, days=2.5)
    with served(dsn) as url:
        code, found = doctor(url, ops.token)
        assert code == 0
        assert list(found) == ["server", "token", "version", "clock", "permissions", "workers"]
        worth = {name: one["finding"] for name, one in found.items()}
        assert worth.pop("workers") == "warn"
        assert set(worth.values()) == {"ok"}
        assert found["workers"]["message"] == "no worker is alive: no job runs"
        assert "ops (service), without expiry" in found["token"]["message"]
        factory.register()
        assert doctor(url, ops.token)[1]["workers"]["finding"] == "ok"

        code, found = doctor(url, ann.token)
        assert code == 0
        assert found["token"]["finding"] == "warn"
        assert found["token"]["message"] == "the token of ann (service) expires in 2 days"
        assert found["workers"]["message"] == "not checked: the token lacks workers:view"
        assert found["permissions"]["message"] == "jobs:cancel, jobs:read, jobs:submit"

        assert doctor(url, idle.token)[1]["permissions"]["finding"] == "warn"
        code, found = doctor(url, new_secret().text)
        assert (code, found["token"]["finding"], list(found)) == (1, "fail", ["server", "token"])
    code, found = doctor("http://127.0.0.1:1", ops.token)
    assert (code, list(found)) == (5, ["server"])
    assert "cannot be reached" in found["server"]["message"]


@pytest.mark.parametrize(
    "check, text",
    [
        (judge_version(replace(ME, server_version="9.9.9")), "the server has 9.9.9, this command"),
        (judge_version(ME), "the server has an older version, this command"),
        (
            judge_clock(replace(ME, server_time=datetime(2020, 1, 1, tzinfo=UTC)), 0),
            "s behind this",
        ),
        (judge_clock(ME, 0), "not checked: an older server does not say its time"),
    ],
)
def test_doctor_names_a_server_of_another_version_or_time(check: HealthCheck, text: str) -> None:
    assert check.finding is Finding.WARN
    assert text in check.message
