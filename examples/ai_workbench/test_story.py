"""The story of the README: 202 and a pointer, a stream at another replica, a killed replica."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, LiteralString
from uuid import UUID, uuid5

import httpx2
import psycopg
import pytest

from examples.conftest import Program, Programs, until

CHUNK = "these are exactly ten words and also a number {}"
PREFIX = "/api/v1/workspaces/acme"


@pytest.mark.timeout(900)
def test_ai_workbench(programs: Programs) -> None:
    story = Story(programs)
    story.small_document_is_ingested_within_the_request()
    story.killed_replica_is_followed_from_the_other_one()
    story.other_workspaces_see_nothing()


class Story:
    def __init__(self, programs: Programs) -> None:
        self.programs = programs
        self.gate = programs.files / "gate"
        scope = ("viewer", "--scope", "workspace", "--workspace")
        self.token = programs.token("acme-page", *scope, "acme")
        self.strange_token = programs.token("other-page", *scope, "other")
        self.replicas = [self.start_replica(), self.start_replica()]
        self.urls = [each.find(r"running on (http://\S+)") for each in self.replicas]

    def start_replica(self) -> Program:
        command = ("uvicorn", "workbench.api:app", "--port", "0", "--no-access-log")
        return self.programs.start(*command, FAKE_EMBEDDER_GATE=str(self.gate))

    def ingest(self, text: str, query: str = "") -> httpx2.Response:
        url = f"{self.urls[0]}{PREFIX}/knowledge-bases/manuals/ingest{query}"
        return httpx2.post(url, json={"text": text}, timeout=120)

    def read(self, path: str, replica: int) -> Any:
        return httpx2.get(self.urls[replica] + path, timeout=60).json()

    def follow(self, path: str, replica: int, token: str) -> Iterator[tuple[str, Any]]:
        """The events of a job, until its stream ends."""
        options: dict[str, Any] = {"headers": {"Authorization": f"Bearer {token}"}, "timeout": 120}
        url = self.urls[replica] + path
        with httpx2.stream("GET", url, follow_redirects=True, **options) as response:
            if response.status_code != 200:
                yield str(response.status_code), None
                return
            name = ""
            for line in response.iter_lines():
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    yield name, json.loads(value)

    def rows(self, query: LiteralString, *values: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.programs.dsn) as conn:
            return conn.execute(query, values).fetchall()

    def small_document_is_ingested_within_the_request(self) -> None:
        response = self.ingest("one small document")
        assert (response.status_code, response.json()) == (200, {"chunks": 1})

    def killed_replica_is_followed_from_the_other_one(self) -> None:
        chunks = [CHUNK.format(n) for n in range(12)]
        chunks[8] = chunks[8].replace("exactly", "hold")
        response = self.ingest(" ".join(chunks), "?async=true")
        assert response.status_code == 202
        pointer, accepted = response.headers["Location"], response.json()

        until(lambda: self.read(pointer, 1)["processed"] == 8, "8 chunks are not processed")
        job = self.programs.lw.sync.get(accepted["job"])
        assert job.worker is not None
        running = [str(each.pid) for each in self.replicas].index(job.worker.split(":")[1])
        stream = self.follow(accepted["events"], 1 - running, self.token)
        name, state = next(stream)
        assert (name, state["attempt"], state["progress"]["done"]) == ("job.state", 1, 8)

        self.replicas[running].kill()
        self.gate.touch()
        events = list(stream)  # the other replica ends the stream after the job's end
        names = [name for name, _ in events]
        assert names[0] == "job.returned"
        assert names[1] == "job.claimed"
        assert names[-1] == "job.completed"
        assert (events[-1][1]["attempt"], events[-1][1]["result"]) == (2, {"chunks": 12})
        done = [data["progress"]["done"] for name, data in events if name == "job.progressed"]
        assert done == sorted(done)
        assert min(done, default=9) > 8

        document = job.payload["document"] if isinstance(job.payload, dict) else None
        stored = self.rows(
            "select id, position, attempt from workbench.chunk"
            " where document = %s order by position",
            document,
        )
        # Each chunk once, under its id; the second attempt began where the first was killed.
        expected = [(uuid5(UUID(document), str(n)), n, 1 if n < 8 else 2) for n in range(12)]
        assert stored == expected
        self.survivor, self.pointer = 1 - running, pointer

    def other_workspaces_see_nothing(self) -> None:
        events = f"{self.pointer}/events"
        assert list(self.follow(events, self.survivor, self.strange_token)) == [("404", None)]
        elsewhere = self.pointer.replace("/acme/", "/other/")
        url = self.urls[self.survivor] + elsewhere
        assert httpx2.get(url, timeout=60).status_code == 404
