"""Log lines of a worker process."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from laneway import Context, SyncContext
from laneway.config.settings import Settings
from laneway.domain.redaction import Redaction
from laneway.domain.token import new_secret
from laneway.engine.process.logs import JsonLines, TextLines, configure
from tests.engine import tracing_handlers
from tests.engine.spans import Spans, spans
from tests.support.worker_harness import WorkerHarness

__all__ = ["spans"]


def forget_logging(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logging as in a new process; the levels are restored after the test."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    for name in ("", "laneway", "laneway.jobs", "the.application"):
        logger = logging.getLogger(name)
        monkeypatch.setattr(logger, "level", logger.level)


def test_json_line_holds_message_and_error() -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        record = logging.LogRecord(
            "laneway", logging.ERROR, __file__, 1, "job %s", ("7",), sys.exc_info()
        )
    line = json.loads(JsonLines().format(record))
    assert line["message"] == "job 7"
    assert (line["level"], line["logger"]) == ("error", "laneway")
    assert line["time"].endswith("+00:00")
    assert "ValueError: broken" in line["error"]


def test_application_that_logs_its_own_way_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = logging.NullHandler()
    monkeypatch.setattr(logging.getLogger(), "handlers", [own])
    configure(Settings.load())
    assert logging.getLogger().handlers == [own]


def test_otherwise_lines_go_to_stderr_at_the_level_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    forget_logging(monkeypatch)
    laneway = logging.getLogger("laneway")
    configure(Settings.load(log_format="json", log_level="INFO"))
    laneway.info("worker %s serves %s", "w", "default")
    laneway.debug("not shown")
    assert json.loads(capsys.readouterr().err)["message"] == "worker w serves default"


def test_loggers_of_the_application_have_the_level_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    forget_logging(monkeypatch)
    own = logging.getLogger("the.application")
    own.setLevel(logging.NOTSET)
    configure(Settings.load(log_level="DEBUG"))
    own.debug("shown")
    logging.getLogger().handlers.clear()
    configure(Settings.load(log_level="ERROR"))
    own.warning("hidden")
    output = capsys.readouterr().err
    assert "DEBUG shown" in output
    assert "hidden" not in output


def test_level_applies_to_laneway_where_the_application_sets_up_logging(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forget_logging(monkeypatch)
    logging.getLogger().handlers.append(logging.NullHandler())
    laneway = logging.getLogger("laneway")
    laneway.setLevel(logging.NOTSET)
    configure(Settings.load())
    assert laneway.level == logging.NOTSET
    root_level = logging.getLogger().level
    configure(Settings.load(log_level="DEBUG"))
    assert laneway.level == logging.DEBUG
    assert logging.getLogger().level == root_level


def test_quiet_silences_the_lines_about_jobs_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    forget_logging(monkeypatch)
    configure(Settings.load(quiet=True, log_level="DEBUG"))
    logging.getLogger("laneway.jobs").info("greet completed")
    logging.getLogger("laneway").info("worker serves")
    output = capsys.readouterr().err
    assert "greet completed" not in output
    assert "worker serves" in output


class Lines(logging.Handler):
    """Log lines as they would be written, formatted where they were logged."""

    def __init__(self) -> None:
        super().__init__()
        self.json: list[dict[str, object]] = []
        self.text: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.json.append(json.loads(JsonLines().format(record)))
        self.text.append(TextLines().format(record))


@pytest.mark.parametrize("isolation", ["async", "thread"])
async def test_log_line_of_handler_names_its_attempt(
    harness: WorkerHarness, spans: Spans, isolation: str
) -> None:
    own = logging.getLogger("the.application")
    own.setLevel(logging.INFO)
    lines = Lines()
    own.addHandler(lines)

    if isolation == "async":

        @harness.lw.handler("talk")
        async def talk(ctx: Context, word: str) -> None:
            own.info("wrote %s", word)
    else:

        @harness.lw.handler("talk")
        def talk_plainly(ctx: SyncContext, word: str) -> None:
            own.info("wrote %s", word)

    try:
        worker = await harness.start_worker()
        job = await harness.lw.submit("talk", {"word": "hello"})
        await harness.ended(job)
        own.info("outside")
    finally:
        own.removeHandler(lines)
    inside, outside = lines.json
    trace = spans.one("process talk").get_span_context()
    assert trace is not None
    assert {name: inside[name] for name in ("job_id", "attempt", "job_type", "lane", "worker")} == {
        "job_id": str(job.id),
        "attempt": 1,
        "job_type": "talk",
        "lane": "default",
        "worker": worker.name,
    }
    assert inside["trace_id"] == f"{trace.trace_id:032x}"
    assert not {"job_id", "trace_id"} & outside.keys()
    assert f"job_id={job.id} attempt=1" in lines.text[0]
    assert lines.text[1].endswith("INFO outside")


async def test_line_of_a_child_process_is_written_as_its_worker_writes(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    forget_logging(monkeypatch)
    configure(Settings.load(log_format="json", log_level="ERROR"))
    harness.lw.handlers.add(tracing_handlers.talks_apart.handler)
    worker = await harness.start_worker()
    job = await harness.lw.submit("talks_apart")
    await harness.ended(job)
    (line,) = [json.loads(one) for one in capfd.readouterr().err.splitlines() if "afar" in one]
    assert line["message"] == "from afar with password=***"
    assert (line["job_id"], line["worker"], line["lane"]) == (str(job.id), worker.name, "default")


def test_no_secret_stands_in_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    token, link = new_secret(), new_secret("link")
    dsn = "postgresql://ann:s3cret%21word@db.example/app?sslpassword=qu3ry"
    for form in ("json", "text"):
        forget_logging(monkeypatch)
        configure(Settings.load(database_url=dsn, log_format=form))
        logger = logging.getLogger("the.application")
        for line in (
            f"connecting to {dsn}",
            "password is s3cret!word, or s3cret%21word",
            "host=db user=ann password='other \\' w0rd' port=5432",
            f"Authorization: Bearer {token.text}",
            f"https://bob:t0psecret@elsewhere/ and {token.text} or {link.text}",
        ):
            logger.warning("%s", line)
        try:
            raise RuntimeError(f"cannot reach {dsn} with {token.text}")
        except RuntimeError:
            logger.exception("failed")
    output = capsys.readouterr().err
    assert output.count("connecting to postgresql://ann:***@db.example/app?sslpassword=***") == 2
    for secret in (token.text, link.text, token.text[5:], "s3cret", "qu3ry", "t0psecret", "w0rd"):
        assert secret not in output


def test_fields_of_a_json_line_hide_secrets_and_are_those_of_laneway_only() -> None:
    def line(logger: str, **fields: object) -> dict[str, object]:
        record = logging.LogRecord(logger, logging.INFO, __file__, 1, "a line", (), None)
        vars(record).update(fields)
        found: dict[str, object] = json.loads(JsonLines().format(record))
        return found

    secret = "postgresql://ann:s3cret@db.example/app"
    own = line("laneway.jobs", reason=secret, job_id={"dsn": secret}, attempt=2, duration=0.5)
    assert own["reason"] == "postgresql://ann:***@db.example/app"
    assert "s3cret" not in str(own)
    assert (own["attempt"], own["duration"]) == (2, 0.5)
    for other in ("the.application", "lanewayish"):
        assert not {"reason", "lane"} & line(other, reason="hunter2", lane="left").keys()


def test_text_without_secrets_is_not_changed() -> None:
    redact = Redaction(["postgresql://ann@db/app", "host=db password=abc", None])
    for line in (
        "GET /jobs/01a1e2d2-fab0-747b-8bd8-18d6ff7ab5e2 200 in 3 ms",
        "lw_short is not a token; see http://host:8420/docs",
        "the abc of jobs",
    ):
        assert redact(line) == line
