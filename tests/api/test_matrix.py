"""Roles x routes x objects inside and outside the scope: every access requires its grant."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from fastapi import FastAPI

from laneway.domain.webhook import new_secret
from laneway.operations.catalog import DECLARED
from tests.api.conftest import Ask, People, Principal
from tests.api.matrix import ENTRIES, MARK, PEOPLE, PLACES, Entry, Person, Side
from tests.api.streaming import reading
from tests.api.test_app import OPEN, served
from tests.support.job_factory import JobFactory

# Requests that change nothing here: without a session, or a dry run.
NO_ACTS = {("POST", "/logout"), ("POST", "/jobs/bulk"), ("PUT", "/admin/workers/lanes")}
WRITTEN = (Path(__file__).parents[2] / "docs" / "howto" / "access.md").read_text("utf-8")
FIGURES = Path(__file__).parents[2] / "bench" / "latest" / "authz.json"
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class MatrixFixture:
    """All principals, and new objects on either side for every request."""

    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        self._conn = conn
        self._scene = JobFactory(conn)
        self._people = People(conn)
        self._numbers: Iterator[int] = count(1)
        self.far_jobs: set[str] = set()
        self._seen_act = 0
        self.tokens = {person.name: self._register(person) for person in PEOPLE}
        self._somebody = self._people.new("somebody").id
        self._people.new(MARK)
        conn.execute(
            "update laneway.worker_lanes set max_slots = 9, updated_by = %s where name = 'system'",
            [MARK],
        )
        conn.execute("update laneway.worker_lanes set max_slots = 9 where name = 'interactive'")
        # Lists must omit these.
        self.job(PEOPLE[0], "far", 0)
        self.flow(PEOPLE[0], "far", 0)
        self.schedule(PEOPLE[0], "far", 0)

    def _register(self, person: Person) -> Principal:
        workspace = "ours" if person.scope == "workspace" else None
        lanes = sorted(person.lanes) if person.lanes else None
        permissions = None if person.token is None else sorted(person.token)
        return self._people.new(
            person.name,
            person.role,
            scope=person.scope,
            workspace=workspace,
            lanes=lanes,
            permissions=permissions,
        )

    def audit_entries(self) -> list[tuple[Any, ...]]:
        """The audit entries since the last call: (actor, outcome, door, request id)."""
        found = self._conn.execute(
            "select id, actor, outcome, door, request_id from laneway.audit where id > %s"
            " order by id",
            [self._seen_act],
        ).fetchall()
        self._seen_act = found[-1][0] if found else self._seen_act
        return [act[1:] for act in found]

    def request(self, entry: Entry, path: str, who: Person, side: Side) -> tuple[str, Any]:
        """The path and the body of one request."""
        number = next(self._numbers)
        named = None if entry.make is None else str(getattr(self, entry.make)(who, side, number))
        body = entry.body(*PLACES[side], number) if callable(entry.body) else entry.body
        return re.sub(r"\{\w+\}", named or "", path) + entry.query, body

    def job(self, who: Person, side: Side, number: int) -> UUID:
        workspace, _, job_type = PLACES[side]
        owner, payload = (who.name, "{}") if side == "near" else (MARK, json.dumps({"of": MARK}))
        job_id = self._scene.submit(
            job_type, workspace=workspace, created_by=owner, payload=payload
        )
        if side == "far":
            self.far_jobs.add(str(job_id))
        return job_id

    def flow(self, who: Person, side: Side, number: int) -> UUID:
        workspace, _, job_type = PLACES[side]
        owner = who.name if side == "near" else MARK
        flow_id, job_id = uuid4(), uuid4()
        self._conn.execute(
            "select laneway.create_flow(%s, %s, %s, null, %s)",
            [flow_id, "f" if side == "near" else MARK, workspace, owner],
        )
        self._conn.execute(
            "select laneway.submit(job_type => %s, id => %s, workspace => %s, created_by => %s,"
            " flow => %s)",
            [job_type, job_id, workspace, owner, flow_id],
        )
        if side == "far":
            self.far_jobs |= {str(flow_id), str(job_id)}
        return flow_id

    def lane(self, who: Person, side: Side, number: int) -> str:
        return PLACES[side][1]

    def worker(self, who: Person, side: Side, number: int) -> UUID:
        """A worker that serves the lane of its side."""
        self._scene.worker_id = uuid4()
        return self._scene.register(serves=(PLACES[side][1],), name=f"host:{number}")

    def own_lane(self, who: Person, side: Side, number: int) -> str:
        """The target of a rollback is in scope; that is not enough."""
        return PLACES["near"][1]

    def schedule(self, who: Person, side: Side, number: int) -> str:
        workspace, _, job_type = PLACES[side]
        payload = "{}" if side == "near" else json.dumps({"of": MARK})
        self._conn.execute(
            "insert into laneway.schedules (name, job_type, cron, workspace, payload)"
            " values (%s, %s, '0 3 * * *', %s, %s)",
            [f"s{number}", job_type, workspace, payload],
        )
        self._conn.execute(
            "insert into laneway.schedule_state (name) values (%s) on conflict do nothing",
            [f"s{number}"],
        )
        return f"s{number}"

    def limit(self, who: Person, side: Side, number: int) -> str:
        self._conn.execute("insert into laneway.limits (name) values (%s)", [f"l{number}"])
        return f"l{number}"

    def webhook(self, who: Person, side: Side, number: int) -> str:
        self._conn.execute(
            "insert into laneway.webhooks (name, url, events, secret, created_by, updated_by)"
            " values (%s, 'https://example.com/', '{job.failed}', %s, 'tests', 'tests')",
            [f"w{number}", new_secret()],
        )
        return f"w{number}"

    def publisher(self, who: Person, side: Side, number: int) -> str:
        self._scene.publish(f"t{number}", application=f"app{number}")
        return f"app{number}"

    def role(self, who: Person, side: Side, number: int) -> str:
        return self._people.role(f"r{number}", "jobs:read")

    def grant(self, who: Person, side: Side, number: int) -> UUID:
        grant_id = uuid4()
        self._conn.execute(
            "insert into laneway.role_grants (id, principal_id, role, scope, granted_by)"
            " values (%s, %s, 'viewer', 'own', 'tests')",
            [grant_id, self._somebody],
        )
        return grant_id

    def token(self, who: Person, side: Side, number: int) -> UUID:
        self._people.token(self._somebody)
        row = self._conn.execute(
            "select id from laneway.tokens order by created_at desc limit 1"
        ).fetchone()
        assert row is not None
        return UUID(str(row[0]))

    def run(self, who: Person, side: Side, number: int) -> UUID:
        """A bulk run of another principal."""
        run_id = uuid4()
        self._conn.execute(
            "insert into laneway.bulk_runs (id, principal_id, ordered_by, verb, state)"
            " values (%s, %s, %s, 'cancel', 'done')",
            [run_id, uuid4(), MARK],
        )
        return run_id


@pytest.fixture
def world(conn: psycopg.Connection[Any]) -> MatrixFixture:
    return MatrixFixture(conn)


def test_every_route_has_its_line_in_the_matrix(app: FastAPI) -> None:
    assert set(served(app)) == set(ENTRIES)


def test_declared_permissions_are_those_of_the_written_table() -> None:
    """The table is written manually, so that it detects a wrong declaration."""
    rows = re.findall(r"^\| (\w+) `(/\S+)` \| `([\w:]+)` \| (.+) \|$", WRITTEN, re.MULTILINE)
    written = {(method, path): (permission, scope) for method, path, permission, scope in rows}
    also = {each: f"{each.scope}; all lanes with {', '.join(f'`{f}`' for f in each.all_lanes_for)}"
            for each in DECLARED.values() if each.all_lanes_for}  # fmt: skip
    assert written == {
        (each.method, each.path): (each.permission, also.get(each, each.scope))
        for each in DECLARED.values()
    }


async def test_every_access_requires_its_grant_and_leaves_its_audit_entry(
    app: FastAPI, ask: Ask, world: MatrixFixture
) -> None:
    """Every changing route leaves one audit entry with its request id, accepted or refused."""
    cells = 0
    wrong: list[tuple[object, ...]] = []
    leaks: list[tuple[object, ...]] = []
    for (method, path), entry in ENTRIES.items():
        is_audited = method != "GET" and (method, path) not in OPEN
        for who in (None, *PEOPLE):
            for side in entry.sides:
                cells += 1
                asker = who or PEOPLE[0]
                target, body = world.request(entry, path, asker, side)
                sent = {} if body is None else {"json": body}
                token = None if who is None else world.tokens[who.name]
                if is_audited:
                    world.audit_entries()
                if entry.is_stream:
                    answer = await _opened(app, token, target)
                else:
                    answer = await ask(token, method, target, **sent)
                cell = (method, path, asker.name if who else None, side, answer.status_code)
                if is_audited:
                    found = world.audit_entries()
                    if found != _expected_audit(method, path, who, answer):
                        wrong.append((*cell, found))
                expected = _expected(entry, method, path, who, side)
                if expected is None:
                    continue
                is_through = answer.status_code < 400 or answer.status_code == 409
                if expected == "through" and not is_through:
                    wrong.append((*cell, answer.text[:300]))
                elif expected != "through" and answer.status_code != expected:
                    (leaks if is_through else wrong).append((*cell, expected, answer.text[:300]))
                if (who is None or who.is_narrow) and _tells(world, answer.text, target):
                    leaks.append((*cell, "tells of the stranger", answer.text[:300]))
    _keep(cells, len(leaks))
    assert not leaks, "\n".join(map(str, leaks))
    assert not wrong, "\n".join(map(str, wrong))


def _expected_audit(method: str, path: str, who: Person | None, answer: Any) -> list[Any]:
    """Changes and refusals leave an entry, other requests none."""
    outcome = {401: None, 403: "refused", 404: "refused"}.get(answer.status_code)
    is_idle = path.endswith("/thaw") and answer.text == '{"lanes":[]}'
    if answer.is_success and (method, path) not in NO_ACTS and not is_idle:
        outcome = "done"
    elif answer.status_code == 404 and who is not None and not who.is_narrow:
        outcome = None
    name = None if who is None else who.name
    request_id = answer.headers["x-request-id"]
    return [] if outcome is None else [(name, outcome, "http", request_id)]


async def _opened(app: FastAPI, who: Principal | None, path: str) -> Any:
    """The start of a stream."""
    topics = ("jobs",) if path == "/events" else ()
    async with reading(app, who, path, topics=topics) as stream:
        first = await stream.next() if stream.status == 200 else None
        return SimpleNamespace(status_code=stream.status, text=json.dumps(first))


def _expected(entry: Entry, method: str, path: str, who: Person | None, side: Side) -> Any:
    if (method, path) in OPEN:
        return None
    return 401 if who is None else entry.answer(who, side)


def _tells(world: MatrixFixture, text: str, target: str) -> bool:
    named = set(_UUID.findall(text)) - set(_UUID.findall(target))
    return MARK in text or bool(named & world.far_jobs)


def _keep(cells: int, leaks: int) -> None:
    if os.environ.get("LANEWAY_FIGURES"):
        FIGURES.parent.mkdir(parents=True, exist_ok=True)
        FIGURES.write_text(json.dumps({"authz_cells": cells, "authz_leaks": leaks}) + "\n")
