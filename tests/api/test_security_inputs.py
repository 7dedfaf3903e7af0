"""Input is data and nothing else: rows 4, 5, 6 and 10 of the security checklist."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from fastapi import FastAPI

import laneway
from laneway.api.routes.description import describe
from laneway.config.settings import Settings
from laneway.control.throttle import Throttle
from tests.api.conftest import Ask, People, Principal
from tests.api.matrix import ENTRIES, PLACES
from tests.api.test_app import served
from tests.api.test_security_entry import concrete
from tests.support.job_factory import JobFactory

SOURCE = Path(laneway.__file__).parent

# -- row 4: JSON only -------------------------------------------------------------------------

FORBIDDEN_MODULES = {"pickle", "cPickle", "marshal", "shelve", "dill", "jsonpickle", "yaml"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}


def test_nothing_is_unpickled_evaluated_or_pasted_into_sql() -> None:
    """ruff's S rules find more; a comment cannot silence this one."""
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {what}"
        for path in SOURCE.rglob("*.py")
        for line, what in _dangers(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []


def _dangers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if FORBIDDEN_MODULES & {name.split(".")[0] for name in names}:
                yield node.lineno, f"imports {names}"
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_CALLS:
            yield node.lineno, f"calls {node.func.id}"
        for word in node.keywords:
            if word.arg == "shell" and not isinstance(word.value, ast.Constant):
                yield node.lineno, "asks a shell"
            if word.arg == "shell" and isinstance(word.value, ast.Constant) and word.value.value:
                yield node.lineno, "asks a shell"
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if called in ("execute", "executemany", "copy", "SQL") and node.args:
            pasted = (ast.JoinedStr, ast.BinOp)
            if isinstance(node.args[0], pasted) or _is_format(node.args[0]):
                yield node.lineno, f"pastes text into {called}"


def _is_format(node: ast.AST) -> bool:
    """Whether it is `"...".format(...)`; `psycopg.sql` quotes its values."""
    return (
        isinstance(node, ast.Call)
        and getattr(node.func, "attr", "") == "format"
        and isinstance(getattr(node.func, "value", None), ast.Constant)
    )


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from yaml import load",
        "eval('1')",
        "conn.execute(f'select {x}')",
        "conn.execute('select ' + x)",
        "conn.execute('select %s' % x)",
        "SQL('select {}'.format(x))",
        "run('ls', shell=True)",
    ],
)
def test_scan_finds_dangerous_code(code: str) -> None:
    assert list(_dangers(ast.parse(code)))


async def test_only_json_is_read_as_a_body(ask: Ask, people: People) -> None:
    ann = people.new("ann", "submitter")
    body = json.dumps({"job_type": "greet"})
    for kind in (
        "application/x-python-pickle",
        "application/yaml",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ):
        answer = await ask(ann, "POST", "/jobs", content=body, headers={"Content-Type": kind})
        assert answer.status_code == 422, kind


# -- row 5: names -----------------------------------------------------------------------------

HOSTILE = (
    "'", '"', "`", ";", "--", "/*", "\\", "$$", "$1", "%s", "%(x)s", "{}", "{to}", "?",
    "' or '1'='1", "1; drop table laneway.jobs; --", "'; select pg_sleep(9); --",
    '"; drop schema laneway cascade; --', "') union select digest::text from laneway.tokens --",
    "x' and (select count(*) from pg_shadow) > 0 --", "pg_catalog.pg_class", "laneway.jobs",
    "pg_temp", "null", "NULL", "true", "-1", "0x00", "*", "seq desc; --", "..",
    "../../etc/passwd", "a\nb", "a\r\nSet-Cookie: x=y", "\x01analysis", "é" * 40, "x" * 64,
    "x" * 2000, "\u202eevil", "\U0001f600",
    "<script>alert(1)</script>", "__proto__", "${jndi:ldap://x}", "{{7*7}}", "a\x00b",
)  # fmt: skip
TOLD = re.compile(r"syntax error|psycopg|relation \"|traceback", re.IGNORECASE)


@pytest.fixture
def admin(people: People) -> Principal:
    return people.new("admin", "platform_admin")


def _whole(conn: psycopg.Connection[Any]) -> Any:
    """The schema and the rows that no request here may change."""
    return conn.execute(
        "select (select count(*) from pg_class where relnamespace = 'laneway'::regnamespace),"
        " (select count(*) from laneway.jobs), (select count(*) from laneway.tokens)"
    ).fetchone()


async def test_forty_hostile_names_in_every_path_and_filter_are_data(
    ask: Ask, app: FastAPI, admin: Principal, factory: JobFactory
) -> None:
    assert len(HOSTILE) >= 40
    app.state.throttle = _unbounded()
    factory.submit()
    before = _whole(factory.conn)
    asked: Counter[str] = Counter()
    for path, operations in describe(app)["paths"].items():
        for method, operation in operations.items():
            if path in ("/", "/login", "/logout") or path.endswith("/stream") or path == "/events":
                continue
            for parameter in operation.get("parameters", []):
                if parameter["in"] not in ("path", "query"):
                    continue
                is_text = _is_text(parameter["schema"])
                for name in HOSTILE if is_text else HOSTILE[::10]:
                    target, params = concrete(path), {}
                    if parameter["in"] == "path":
                        marked = path.replace("{" + parameter["name"] + "}", quote(name, safe=""))
                        target = concrete(marked)
                    else:
                        params = {parameter["name"]: name}
                    answer = await ask(admin, method.upper(), target, params=params)
                    asked[name] += 1
                    assert answer.status_code < 500, (method, path, parameter["name"], name)
                    assert not TOLD.search(answer.text), (path, name, answer.text)
                    assert "x=y" not in answer.headers.get("set-cookie", "")
    assert asked.keys() == set(HOSTILE)
    assert asked.total() > 700
    assert min(asked.values()) >= 40
    assert _whole(factory.conn) == before


def _is_text(schema: dict[str, Any]) -> bool:
    """Whether it accepts any text; other values are refused before any statement."""
    kinds = [one for one in schema.get("anyOf", [schema]) if one.get("type") == "string"]
    return any("format" not in one and "enum" not in one for one in kinds)


def _unbounded() -> Any:
    return Throttle(Settings.load(requests_per_second=0))


async def test_hostile_names_in_bodies_are_data(ask: Ask, app: FastAPI, admin: Principal) -> None:
    app.state.throttle = _unbounded()
    for (method, path), entry in ENTRIES.items():
        body = entry.body(*PLACES["near"], 1) if callable(entry.body) else entry.body
        if not body or path == "/jobs/bulk":
            continue
        for field, value in body.items():
            if not isinstance(value, str):
                continue
            for name in HOSTILE[::4]:
                answer = await ask(admin, method, concrete(path), json={**body, field: name})
                assert answer.status_code < 500, (path, field, name)
                assert not TOLD.search(answer.text), (path, field, name)


async def test_no_request_chooses_how_a_list_is_sorted(app: FastAPI) -> None:
    for path, operations in describe(app)["paths"].items():
        for operation in operations.values():
            names = {one["name"] for one in operation.get("parameters", [])}
            assert not names & {"sort", "order", "order_by", "sort_by", "fields"}, path


# -- row 6: what others wrote is text ---------------------------------------------------------

XSS = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'>"


# Files of the dashboard that the login page uses.
OWN_FILES = {"ui/icon.svg", "ui/login.css"}


class Tags(HTMLParser):
    """The executable parts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.bad: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        is_own = tag in ("img", "link") and not {
            value for name, value in attrs if name in ("src", "href")
        }.difference(OWN_FILES)
        if not is_own and tag in (
            "script", "img", "iframe", "object", "embed", "svg", "style", "base", "link",
        ):  # fmt: skip
            self.bad.append(tag)
        for name, value in attrs:
            if name.startswith("on") or "script:" in (value or "").lower():
                self.bad.append(f"{tag} {name}={value}")


async def test_job_data_is_always_served_as_json(
    ask: Ask, app: FastAPI, people: People, factory: JobFactory
) -> None:
    admin = people.new(XSS, "platform_admin")
    made = await ask(
        admin,
        "POST",
        "/jobs",
        json={"job_type": XSS[:100], "payload": {XSS: XSS}, "tags": [XSS], "workspace": XSS},
    )
    assert made.status_code == 202
    claim = factory.running(payload=json.dumps({"a": XSS}))
    factory.settle(claim, "giveup", error=json.dumps({"type": XSS, "message": XSS}))
    pages = 0
    for method, path in set(served(app)):
        if method != "GET" or path.endswith("/stream") or path == "/events":
            continue
        for job_id in (made.json()["id"], str(claim.job_id)):
            target = concrete(path.replace("{job_id}", job_id))
            answer = await ask(admin, "GET", target, params={"link": XSS, "q": XSS})
            kind = answer.headers.get("content-type", "none").partition(";")[0]
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["content-security-policy"].startswith("default-src 'self'")
            if path == "/ui/{path}":
                # The same files for every request; tests/api/test_dashboard.py checks them.
                assert answer.text == (await ask(None, "GET", "/ui/")).text
            elif kind == "text/html":
                pages += 1
                reader = Tags()
                reader.feed(answer.text)
                assert reader.bad == [], path
            else:
                is_plain = path == "/metrics" and kind in (
                    "text/plain",
                    "application/openmetrics-text",
                )
                is_json = kind in ("application/json", "application/problem+json", "none")
                assert is_plain or is_json, (path, kind)
    assert pages >= 2


# -- row 10: what a client may not say --------------------------------------------------------

OURS_TO_SAY = (
    "status", "attempt", "retries", "claimed_by", "claimed_at", "worker", "lease_until", "seq",
    "created_by", "created_at", "approved_by", "finished_at", "result", "error", "updated_by",
    "is_seeded", "digest", "principal_id",
)  # fmt: skip


async def test_fields_that_are_not_the_clients_are_refused_by_name(
    ask: Ask, app: FastAPI, admin: Principal
) -> None:
    document = describe(app)
    checked = 0
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            content = operation.get("requestBody", {}).get("content", {})
            if "application/json" not in content:
                continue
            entry = ENTRIES[(method.upper(), path)]
            body = entry.body(*PLACES["near"], 1) if callable(entry.body) else entry.body
            given = {**(body or {}), **dict.fromkeys(OURS_TO_SAY, "x")}
            answer = await ask(admin, method.upper(), concrete(path), json=given)
            assert answer.status_code == 422, (method, path)
            refused = {one["field"].rpartition(".")[2] for one in answer.json()["errors"]}
            assert set(OURS_TO_SAY) <= refused, (method, path, refused)
            checked += 1
    assert checked >= 20


async def test_fields_inside_a_batch_and_a_filter_are_refused_too(
    ask: Ask, admin: Principal
) -> None:
    extra = {"status": "completed", "attempt": 9, "created_by": "somebody"}
    batch = {"jobs": [{"job_type": "greet", **extra}]}
    refused = await ask(admin, "POST", "/jobs/batch", json=batch)
    assert {one["field"] for one in refused.json()["errors"]} == {
        f"body.jobs.0.{name}" for name in extra
    }
    bulk = {"verb": "cancel", "all": True, "filter": {"within": [], "created_by": "x"}}
    assert (await ask(admin, "POST", "/jobs/bulk", json=bulk)).status_code == 422


async def test_job_belongs_to_submitter_in_permitted_workspace(ask: Ask, people: People) -> None:
    ann = people.new("ann", "operator", workspace="ours")
    made = await ask(ann, "POST", "/jobs", json={"job_type": "greet", "workspace": "ours"})
    assert made.json()["created_by"] == "ann"
    for body in ({"job_type": "greet", "workspace": "theirs"}, {"job_type": "greet"}):
        for path, sent in (("/jobs", body), ("/jobs/batch", {"jobs": [body]})):
            assert (await ask(ann, "POST", path, json=sent)).status_code == 403
