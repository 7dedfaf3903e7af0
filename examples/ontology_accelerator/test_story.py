"""The story of the README: two pods, a frozen pod that returns too late, a hanging generator."""

from __future__ import annotations

import re
from collections.abc import Callable

import httpx2
import pytest

from examples.conftest import Program, Programs, until
from laneway import Job
from laneway.testing import clock

TEXT = "Land Registry\n\nTitle Deeds and Charges"


@pytest.mark.timeout(900)
def test_ontology_accelerator(programs: Programs) -> None:
    story = Story(programs)
    story.job_runs_in_any_pod_and_is_reviewed()
    story.each_pod_runs_one_job_and_any_page_stops_it()
    story.frozen_pod_loses_its_job_and_cannot_write_when_it_returns()
    story.hanging_generator_loses_its_job_though_its_pod_lives()
    story.job_that_kills_its_process_fails_after_three_attempts()


class Story:
    def __init__(self, programs: Programs) -> None:
        self.programs = programs
        self.gate = programs.files / "gate"
        self.pods = [self.start_pod(), self.start_pod()]
        self.urls = [pod.find(r"running on (http://\S+)") for pod in self.pods]

    def start_pod(self) -> Program:
        command = ("uvicorn", "accelerator.web:app", "--port", "0", "--no-access-log")
        return self.programs.start(*command, FAKE_GENERATOR_GATE=str(self.gate))

    def submit(self, title: str, text: str, pod: int = 0) -> None:
        form = {"title": title, "text": text}
        url = f"{self.urls[pod]}/ontology/submit"
        response = httpx2.post(url, data=form, follow_redirects=True, timeout=60)
        assert title in response.text

    def read(self, path: str, pod: int = 0) -> str:
        return httpx2.get(self.urls[pod] + path, timeout=60).text

    def job(self, title: str) -> Job:
        [found] = self.programs.lw.sync.jobs.list(q=title, limit=1).items
        return self.programs.lw.sync.get(found.id)

    def until_job(self, title: str, is_met: Callable[[Job], bool]) -> Job:
        return until(
            lambda: job if is_met(job := self.job(title)) else None, f"{title} is not there yet"
        )

    def pod_of(self, job: Job) -> int:
        """The pod that runs a job; a worker's name ends with its process id."""
        assert job.worker is not None
        return [str(pod.pid) for pod in self.pods].index(job.worker.split(":")[1].split("-")[0])

    def outcomes(self, title: str) -> list[str | None]:
        return [attempt.outcome for attempt in self.job(title).attempts]

    def runs(self, title: str) -> list[str]:
        """The runs of a title on the page of ontologies."""
        return re.findall(rf"<td>{title}</td><td>([^<]*)</td>", self.read("/ontologies", pod=1))

    def job_runs_in_any_pod_and_is_reviewed(self) -> None:
        self.submit("Registers", TEXT)
        done = self.until_job("Registers", lambda job: job.finished_at is not None)
        assert self.runs("Registers") == [done.result]
        assert "Charges, Deeds, Land, Registry, Title" in self.read("/ontologies", pod=1)

    def each_pod_runs_one_job_and_any_page_stops_it(self) -> None:
        for title in ("Held one", "Held two", "Held three"):
            self.submit(title, "hold")
        first = self.until_job("Held one", lambda job: job.status == "running")
        second = self.until_job("Held two", lambda job: job.status == "running")
        assert {self.pod_of(first), self.pod_of(second)} == {0, 1}
        assert self.job("Held three").status == "approved"

        for title in ("Held one", "Held two", "Held three"):
            stop = f"/jobs/{self.job(title).id}/stop"
            pod = 1 if self.job(title).worker is None else 1 - self.pod_of(self.job(title))
            assert f'action="{stop}"' in self.read("/", pod=pod)
            httpx2.post(self.urls[pod] + stop, timeout=60)
        for title in ("Held one", "Held two", "Held three"):
            ended = self.until_job(title, lambda job: job.finished_at is not None)
            assert (ended.status, ended.cancelled_by) == ("cancelled", "web")
            assert self.runs(title) == []

    def frozen_pod_loses_its_job_and_cannot_write_when_it_returns(self) -> None:
        self.programs.run("laneway", "lanes", "set", "ontology", "--lease-seconds", "2")
        self.submit("Frozen", f"{TEXT}\n\nhold")
        job = self.until_job("Frozen", lambda job: has_message(job, "section 3"))
        frozen = self.pod_of(job)
        self.pods[frozen].pause()
        # The generator of the first attempt could go on, but it is frozen: the other pod does it.
        self.gate.touch()
        done = self.until_job("Frozen", lambda job: job.status == "completed")
        assert done.attempt == 2

        self.pods[frozen].resume()
        self.submit("After the frost", TEXT, pod=frozen)
        self.until_job("After the frost", lambda job: job.status == "completed")
        self.pods[frozen].find(rf"({done.id}.*attempt 1)")
        assert self.runs("Frozen") == [done.result]
        assert self.outcomes("Frozen") == ["lost", "completed"]
        self.gate.unlink()

    def hanging_generator_loses_its_job_though_its_pod_lives(self) -> None:
        # The lease is longer than the clock jumps, so only the missing progress counts.
        options = ("--lease-seconds", "600", "--stale-timeout-minutes", "1")
        self.programs.run("laneway", "lanes", "set", "ontology", *options)
        self.submit("Hanging", f"{TEXT}\n\nhold")
        self.until_job("Hanging", lambda job: has_message(job, "section 3"))
        clock.advance(seconds=61)
        self.until_job("Hanging", lambda job: job.attempt == 2 or job.retries == 1)
        self.gate.touch()
        done = self.until_job("Hanging", lambda job: job.status == "completed")
        assert self.runs("Hanging") == [done.result]
        first = self.job("Hanging").attempts[0]
        assert first.error is not None
        assert "progress" in first.error.message

    def job_that_kills_its_process_fails_after_three_attempts(self) -> None:
        self.submit("Poison", "crash")
        self.submit("Healthy", TEXT)
        self.until_job("Healthy", lambda job: job.status == "completed")
        failed = self.until_job("Poison", lambda job: job.status == "failed")
        assert (failed.attempt, self.runs("Poison")) == (3, [])
        assert "failed" in self.read("/", pod=1)


def has_message(job: Job, message: str) -> bool:
    return job.progress is not None and job.progress.message == message
