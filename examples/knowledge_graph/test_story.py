"""The story of the README: approval, a killed worker, a runaway projection, conditions, limits."""

from __future__ import annotations

from functools import partial

import psycopg
import pytest

from examples.conftest import Program, Programs, until
from laneway import Job
from laneway.errors import Refused
from laneway.http import Client

NOVEL = " ".join(f"chapter{n} heroes travel towards distant mountains" for n in range(60))


@pytest.mark.timeout(900)
def test_knowledge_graph(programs: Programs) -> None:
    token = programs.token("librarian", "operator", "--scope", "all")
    server = programs.start("laneway", "server", "--port", "0", "--no-open")
    with Client(server.find(r"serving (http://\S+)"), token) as client:
        story = Story(programs, client)
        story.worker = story.start_worker("first")
        story.cheap_document_runs_without_a_person()
        story.expensive_document_waits_for_another_person_and_survives_a_crash()
        story.runaway_projection_is_cancelled_while_others_work()
        story.maintenance_runs_only_if_there_is_work()
        story.provider_is_never_asked_by_more_than_its_limit()
        story.every_other_type_of_the_three_lanes_runs()


class Story:
    def __init__(self, programs: Programs, client: Client) -> None:
        self.programs = programs
        self.client = client
        self.worker: Program
        self.gate = programs.files / "gate"

    def start_worker(self, name: str) -> Program:
        worker = self.programs.start(
            *("laneway", "worker", "graph:lw", "--name", name), FAKE_PROVIDER_GATE=str(self.gate)
        )
        worker.find(r"worker \S+ (serves) ")
        return worker

    def submit(self, job_type: str, by: str = "ann", **payload: object) -> str:
        return str(self.programs.lw.sync.submit(job_type, payload, created_by=by).id)

    def until_status(self, job_id: str, status: str) -> Job:
        return until(
            lambda: job if (job := self.client.get_job(job_id)).status == status else None,
            f"job {job_id} is not {status}",
        )

    def rows(self, query: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.programs.dsn) as conn:
            return conn.execute(query.encode()).fetchall()

    def cheap_document_runs_without_a_person(self) -> None:
        job = self.submit("ingestion", document="haiku", text="busy silence, ancient petals")
        assert self.client.wait(job, timeout=120) == {"chunks": 1}
        assert self.client.get_job(job).approved_by not in (None, "ann", "bob")
        assert self.rows("select name from kg.concept order by 1") == [
            ("ancient",),
            ("petals",),
            ("silence",),
        ]

    def expensive_document_waits_for_another_person_and_survives_a_crash(self) -> None:
        self.programs.run("laneway", "lanes", "set", "interactive", "--lease-seconds", "2")
        # The provider holds the last chunk until the gate is open.
        text = f"{NOVEL} hold"
        job = self.submit("ingestion", document="novel", text=text)
        waiting = self.until_status(job, "awaiting_approval")
        assert waiting.cost is not None
        assert (float(waiting.cost.amount), waiting.cost.unit) == (0.038, "USD")
        with pytest.raises(Refused, match="another person"):
            self.programs.lw.sync.approve(job, "ann")
        self.programs.run("laneway", "--by", "bob", "jobs", "approve", job, "--comment", "budget")

        until(
            lambda: self.rows("select from kg.source where document = 'novel' offset 17"),
            "18 chunks",
        )
        self.worker.kill()
        self.gate.touch()
        self.worker = self.start_worker("second")
        assert self.client.wait(job, timeout=120) == {"chunks": 19}

        ran = self.client.review_job(job).attempts
        assert [(each.worker, each.outcome) for each in ran[-2:]] == [
            ("first", "lost"),
            ("second", "completed"),
        ]
        counted = "select count(*), count(distinct chunk) from kg.source where document = 'novel'"
        assert self.rows(counted) == [(19, 19)]

    def runaway_projection_is_cancelled_while_others_work(self) -> None:
        runaway = self.submit("projection", iterations=10**9)
        waiting = self.submit("projection", iterations=3)
        self.until_status(runaway, "running")
        # Its lane is full; the other lanes are not.
        codes = {reason.code for reason in self.client.explain_job(waiting).reasons}
        assert "slots_full" in codes
        poem = self.submit("ingestion", document="poem", text="winter evening")
        assert self.client.wait(poem, timeout=120) == {"chunks": 1}

        self.client.cancel_running_job(runaway, "it would take days")
        ended = self.until_status(runaway, "cancelled")
        assert (ended.cancelled_by, ended.cancel_reason) == ("librarian", "it would take days")
        concepts = self.rows("select count(*) from kg.concept")[0][0]
        assert self.client.wait(waiting, timeout=120) == concepts
        assert self.rows("select count(*) from kg.concept where place is null") == [(0,)]

    def maintenance_runs_only_if_there_is_work(self) -> None:
        name = "vocab-refresh"
        self.programs.run("laneway", "schedules", "set", name, "--cron", "* * * * * *")
        self.until_slot(name, "submitted")
        until(lambda: not self.rows("select from kg.concept where embedding is null"), "embedded")
        self.until_slot(name, "skipped")
        self.programs.run("laneway", "schedules", "disable", name)

    def until_slot(self, schedule: str, outcome: str) -> None:
        def newest() -> bool:
            slots = self.programs.lw.sync.schedules.slots(schedule)
            return outcome in {slot.outcome for slot in slots[:3]}

        until(newest, f"no slot of {schedule} was {outcome}")

    def provider_is_never_asked_by_more_than_its_limit(self) -> None:
        self.programs.run("laneway", "limits", "set", "openai", "--max-concurrent", "1")
        self.gate.unlink()
        jobs = [self.submit("ingestion", document=f"held {n}", text="hold") for n in (1, 2)]
        for job in jobs:
            until(partial(self.has_asked, job), f"{job} has not asked its provider")
        assert self.client.get_limit("openai").running == 1
        self.programs.run("laneway", "limits", "set", "openai", "--max-concurrent", "2")
        until(lambda: self.client.get_limit("openai").running == 2, "the limit is still 1")
        self.gate.touch()
        for job in jobs:
            assert self.client.wait(job, timeout=120) == {"chunks": 1}

    def has_asked(self, job_id: str) -> bool:
        lines = [line for each in self.client.review_job(job_id).attempts for line in each.log]
        return any("asks openai" in line.message for line in lines)

    def every_other_type_of_the_three_lanes_runs(self) -> None:
        picture = self.submit("ingest_image", document="cover", url="mountains.png")
        assert self.client.wait(picture, timeout=120) == "a picture of mountains and png"
        scale = self.submit("polarity", positive="mountains", negative="petals")
        assert self.client.wait(scale, timeout=120) == pytest.approx(1, abs=0.2)
        for job_type in ("epistemic_remeasurement", "ontology_annealing"):
            self.client.wait(self.submit(job_type), timeout=120)
        proposal = self.rows("select id from kg.proposal where drops = 'petals'")[0][0]
        dropping = self.submit("proposal_execution", proposal=proposal)
        restoring = self.submit("restore", document="poem", chunks=["summer evenings", "evening"])
        for job in (dropping, restoring):
            self.until_status(job, "awaiting_approval")
            self.programs.lw.sync.approve(job, "bob")
            self.client.wait(job, timeout=120)
        assert self.rows("select count(*) from kg.concept where name = 'petals'") == [(0,)]
        for job_type in ("vocab_consolidate", "artifact_cleanup", "source_embedding"):
            self.client.wait(self.submit(job_type), timeout=120)
        assert self.rows("select count(*) from kg.concept where name = 'evenings'") == [(0,)]
        assert self.rows("select count(*) from kg.source where embedding is null") == [(0,)]
        lanes = self.rows("select lane, count(distinct job_type) from laneway.jobs_view group by 1")
        assert sorted(lanes) == [("interactive", 3), ("maintenance", 5), ("system", 4)]
