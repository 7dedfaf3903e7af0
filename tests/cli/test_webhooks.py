"""Laws of `laneway webhooks`."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import UUID

import pytest

from laneway.domain.webhook import check_secret, new_secret
from tests.cli.conftest import Run
from tests.support.job_factory import JobFactory

SET = ("webhooks", "set", "erp")
URL = ("--url", "https://erp.example.com/hook")


def test_webhook_is_set_listed_shown_tested_and_deleted(run: Run) -> None:
    made = run("--by", "ann", *SET, *URL, "--events", "job.failed", "--lanes", "big,small")
    assert made.stderr == (
        "webhook erp: created; give its secret to the receiver, it is not shown again:\n"
    )
    secret = check_secret(made.stdout.strip())
    changed = run(*SET, "--timeout-s", 5, "--lanes", "", "--tags", "red")
    assert changed.stderr == "webhook erp: set lanes, tags, timeout_s\n"
    listed = run("webhooks", "ls").stdout
    assert "https://erp.example.com/hook" in listed
    assert "tags red" in listed
    (line,) = run("webhooks", "ls", "--json").stdout.splitlines()
    shown = json.loads(run("webhooks", "show", "erp", "--json").stdout)
    assert json.loads(line) == shown
    assert (shown["lanes"], shown["tags"], shown["timeout_s"]) == ([], ["red"], 5)
    assert (shown["created_by"], shown["events"]) == ("ann", ["job.failed"])
    text = run("webhooks", "show", "erp").stdout
    assert "job.failed" in text
    assert secret not in text + listed + line
    assert run("webhooks", "disable", "erp").stderr == "webhook erp: disabled\n"
    assert "disabled" in run("webhooks", "ls").stdout
    assert run("webhooks", "enable", "erp").stderr == "webhook erp: enabled\n"
    job_id = str(UUID(run("webhooks", "test", "erp").stdout.strip()))
    assert json.loads(run("webhooks", "test", "erp", "--json").stdout)["job_id"] != job_id
    assert run("webhooks", "delete", "erp").stderr == "webhook erp: deleted\n"
    assert run("webhooks", "show", "erp").exit_code == 3


def test_secret_is_read_from_a_file_and_rotated(run: Run, tmp_path: Path) -> None:
    file, given = tmp_path / "secret", new_secret()
    file.write_text(f"{given}\n", "utf-8")
    made = run(*SET, *URL, "--secret-file", file, "--json")
    assert json.loads(made.stdout)["secret"] is None
    rotated = run("webhooks", "rotate", "erp")
    assert "secret rotated; the old secret signs too until " in rotated.stderr
    assert check_secret(rotated.stdout.strip()) != given
    missing = run(*SET, "--secret-file", tmp_path / "none")
    assert (missing.exit_code, "cannot read" in missing.stderr) == (2, True)


@pytest.mark.parametrize(
    "given, code, message",
    [
        ((*SET,), 2, "give at least one setting"),
        ((*SET, "--timeout-s", "5"), 3, "no webhook erp"),
        ((*SET, "--url", "erp.example.com"), 2, "must begin with https"),
        (("webhooks", "test", "erp"), 3, "laneway webhooks set erp --url URL"),
        (("webhooks", "rotate", "erp"), 3, "no webhook erp"),
        (("webhooks", "delete", "erp"), 3, "no webhook erp"),
    ],
)
def test_wrong_use_says_what_to_do(
    run: Run, given: tuple[str, ...], code: int, message: str
) -> None:
    failed = run(*given)
    assert failed.exit_code == code
    assert message in " ".join(failed.stderr.split())


def test_mistyped_job_type_of_webhook_is_noted(run: Run, factory: JobFactory) -> None:
    factory.publish("ingest")
    note = "no worker has published ingst yet; did you mean ingest?\n"
    made = run(*SET, *URL, "--job-types", "ingst,ingest,laneway.webhook")
    assert made.stderr.startswith(f"{note}webhook erp: created")
    assert run(*SET, "--timeout-s", 5).stderr == "webhook erp: set timeout_s\n"
    shown = run("webhooks", "show", "erp")
    assert (shown.exit_code, shown.stderr) == (0, note)
    changed = run(*SET, "--job-types", "ingest")
    assert changed.stderr == "webhook erp: set job_types\n"
    assert run("webhooks", "show", "erp").stderr == ""
