"""Every model of the client has exactly the fields of the server's schema."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any, get_type_hints

import pytest
from pydantic import TypeAdapter

from laneway.api.app import make_app
from laneway.api.routes.description import describe
from laneway.config.settings import Settings
from laneway.domain.access import Principal, Role, RoleGrant, Token
from laneway.domain.approval import Decision
from laneway.domain.audit import AuditEntry
from laneway.domain.bulk import BulkPreview, BulkRun
from laneway.domain.change import Change
from laneway.domain.counts import StateCount
from laneway.domain.explanation import Explanation, Reason
from laneway.domain.freeze import HeldJob, LaneWatch, Thawed
from laneway.domain.job import Attempt, Job, LogLine, Progress
from laneway.domain.job_error import JobError
from laneway.domain.job_type import PublishedType, Publisher
from laneway.domain.lane import Lane
from laneway.domain.limit import Limit, LimitStatus
from laneway.domain.next_runs import Fire
from laneway.domain.overview import (
    ActiveJob,
    Gate,
    JobSummary,
    OldSnapshot,
    PriorityLoad,
    TypeLoad,
    WorkerRow,
)
from laneway.domain.review import Review
from laneway.domain.schedule import RunNow, Schedule, Slot
from laneway.domain.stats import Failure, Point
from laneway.domain.storage import Storage, TableSize
from laneway.http import models
from laneway.http.verbs import ClientMethod, ListVerb, ProcedureVerb, StreamVerb, Verbs
from laneway.store.database import Database

# Schema name → the types with its fields, renamed fields (theirs: ours), fields computed from
# others, and fields that only the client has.
SchemaFields = tuple[tuple[type, ...], dict[str, str], set[str], set[str]]


def fields_of(
    *kinds: type, renamed: dict[str, str] | None = None, made: str = "", own: str = ""
) -> SchemaFields:
    return kinds, renamed or {}, set(made.split()), set(own.split())


SCHEMAS: dict[str, SchemaFields] = {
    "JobOut": fields_of(Job, made="label", own="attempts"),
    "JobDetailOut": fields_of(Job, Review, made="label", own="job"),
    "AttemptOut": fields_of(Attempt),
    "ErrorOut": fields_of(JobError, own="is_public"),
    "LogLineOut": fields_of(LogLine),
    "DecisionOut": fields_of(Decision),
    "ExplanationOut": fields_of(Explanation),
    "ReasonOut": fields_of(Reason),
    "SubmittedOut": fields_of(models.Submitted),
    "JobSummaryOut": fields_of(JobSummary),
    "PreviewOut": fields_of(BulkPreview),
    "BulkRunOut": fields_of(BulkRun, own="principal_id"),
    "LaneOut": fields_of(Lane, own="named"),
    "TypeLoadOut": fields_of(TypeLoad),
    "PriorityLoadOut": fields_of(PriorityLoad),
    "GateOut": fields_of(Gate),
    "ActiveJobOut": fields_of(ActiveJob),
    "WorkerRowOut": fields_of(WorkerRow, made="state", own="stopped_at"),
    "OldSnapshotOut": fields_of(OldSnapshot),
    "HeldJobOut": fields_of(HeldJob),
    "LaneWatchOut": fields_of(LaneWatch, own="enabled"),
    "ThawedOut": fields_of(Thawed),
    "PointOut": fields_of(Point),
    "FailureOut": fields_of(Failure),
    "StateCountOut": fields_of(StateCount),
    "PublishedTypeOut": fields_of(PublishedType),
    "PublisherOut": fields_of(Publisher),
    "StorageOut": fields_of(Storage, models.DatabaseState, own="storage"),
    "TableOut": fields_of(TableSize),
    "LimitStatusOut": fields_of(Limit, LimitStatus, own="limit"),
    "ScheduleOut": fields_of(Schedule, made="words next_fires"),
    "FireOut": fields_of(Fire),
    "SlotOut": fields_of(Slot),
    "RunNowOut": fields_of(RunNow),
    "ChangeOut": fields_of(Change, made="verb"),
    "PrincipalOut": fields_of(Principal),
    "RoleOut": fields_of(Role),
    "RoleGrantOut": fields_of(RoleGrant),
    "TokenOut": fields_of(Token),
    "AuditEntryOut": fields_of(AuditEntry, made="claimed"),
    "HealthOut": fields_of(models.Health),
    "ReadinessOut": fields_of(models.Readiness),
    "MeOut": fields_of(models.Me),
    "TermOut": fields_of(models.PermissionScope),
}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """An application without a database."""
    dsn = "postgresql://nowhere/nothing"
    settings = Settings.load(database_url=dsn)
    return describe(make_app(settings, Database(dsn, settings)))


@pytest.mark.parametrize("name", SCHEMAS)
def test_model_has_the_fields_of_its_schema(name: str, document: dict[str, Any]) -> None:
    kinds, renamed, made, own = SCHEMAS[name]
    schema = document["components"]["schemas"][name]
    theirs = {
        renamed.get(field, field): _kind(each)
        for field, each in schema["properties"].items()
        if field not in made
    }
    ours = {
        field: kind for kind in kinds for field, kind in _fields(kind).items() if field not in own
    }
    assert ours.keys() == theirs.keys()
    differing = {
        field: (ours[field], theirs[field])
        for field in ours
        if not _is_read(ours[field], theirs[field])
    }
    assert differing == {}


def _fields(kind: type) -> dict[str, Any]:
    if hasattr(kind, "_fields"):
        hints = get_type_hints(kind)
        return {name: _kind(TypeAdapter(hint).json_schema()) for name, hint in hints.items()}
    schema = TypeAdapter(kind).json_schema()
    while "$ref" in schema:
        schema = {**schema["$defs"][schema["$ref"].rsplit("/", 1)[1]]}
    return {name: _kind(each) for name, each in schema["properties"].items()}


def _kind(schema: dict[str, Any]) -> frozenset[str]:
    """The JSON types of a schema."""
    if "$ref" in schema or schema.get("type") == "object":
        return frozenset({"object"})
    if "anyOf" in schema:
        return frozenset().union(*(_kind(each) for each in schema["anyOf"]))
    if "type" not in schema:
        return frozenset({"string"}) if {"enum", "const"} & schema.keys() else frozenset({"any"})
    words = [schema["type"], schema.get("format")]
    if schema["type"] == "array" and "items" in schema:
        words.append("+".join(sorted(_kind(schema["items"]))))
    return frozenset({" ".join(word for word in words if word)})


def _is_read(ours: frozenset[str], theirs: frozenset[str]) -> bool:
    """Whether our type accepts every value that the server may send."""
    return "any" in ours or _plain(theirs) <= _plain(ours) | {"null"}


def _plain(kinds: Iterable[str]) -> set[str]:
    # An enumeration is described by reference.
    return {"string" if kind == "object" else kind for kind in kinds}


@pytest.mark.parametrize("kind", [models.Opened, models.JobsChanged, models.ControlChanged])
def test_event_has_the_fields_of_its_description(kind: type, document: dict[str, Any]) -> None:
    item = document["paths"]["/events"]["get"]["responses"]["200"]["content"]
    described = [
        each["properties"]["data"]["contentSchema"]
        for each in item["text/event-stream"]["itemSchema"]["oneOf"]
    ]
    (theirs,) = (each for each in described if each.get("title") == f"{kind.__name__}Out")
    ours = _fields(kind)
    assert ours.keys() == theirs["properties"].keys()
    assert all(_is_read(ours[name], _kind(each)) for name, each in theirs["properties"].items())


# Methods with another name than the operation of the server.
NAMES = {"submit_job": "submit", "submit_jobs": "submit_many"}
# Operations for browsers, Prometheus and people.
NOT_FOR_CLIENTS = {
    "get_openapi", "get_docs", "show_login", "log_in", "log_out", "get_metrics", "read_metrics",
}  # fmt: skip


def _operations(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        operation["operationId"]: {**operation, "method": method.upper(), "path": path}
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }


def _verbs() -> dict[str, Any]:
    kinds = (ClientMethod, ListVerb, StreamVerb, ProcedureVerb)
    return {name: each for name, each in vars(Verbs).items() if isinstance(each, kinds)}


def test_every_operation_has_its_verb(document: dict[str, Any]) -> None:
    operations = _operations(document)
    plain = {
        name
        for name, each in operations.items()
        if name not in NOT_FOR_CLIENTS
        and "text/event-stream" not in each["responses"].get("200", {}).get("content", {})
        and each["path"] != "/"
        and not each["path"].startswith("/ui")
    }
    missing = {name for name in plain if NAMES.get(name, name) not in _verbs()}
    assert missing == set()


CALLS = [name for name, each in _verbs().items() if isinstance(each, (ClientMethod, ListVerb))]


@pytest.mark.parametrize("name", CALLS)
def test_call_goes_to_its_operation_and_has_a_key_where_that_takes_one(
    name: str, document: dict[str, Any]
) -> None:
    verb = _verbs()[name]
    given = _arguments(verb.build)
    made = verb.build(**given)
    call = made.page(1, None) if isinstance(verb, ListVerb) else made
    names = {ours: theirs for theirs, ours in NAMES.items()}
    wanted = {"review_job": "get_job", "preview_bulk": "start_bulk"}.get(
        name, names.get(name, name)
    )
    operation = _operations(document)[wanted]
    assert call.method == operation["method"]
    parts = zip(call.path.split("/"), operation["path"].split("/"), strict=True)
    assert all(ours == theirs or theirs.startswith("{") for ours, theirs in parts)
    parameters = {each["name"] for each in operation.get("parameters", ())}
    if name != "preview_bulk":  # which changes nothing
        assert (call.key is not None) == ("Idempotency-Key" in parameters)
    assert {each for each, _ in call.params} <= parameters
    if isinstance(verb, ListVerb):
        assert {"limit", "cursor"} <= parameters


def _arguments(build: Any) -> dict[str, Any]:
    """A value for every required parameter."""
    from laneway.domain.bulk import BulkRequest
    from laneway.domain.bulk import BulkVerb as BulkVerb
    from laneway.domain.filter import JobFilter

    samples: dict[str, Any] = {
        "limit": Limit("gpu"),
        "request": BulkRequest(verb=BulkVerb.CANCEL, wanted=JobFilter(lane="x")),
        "new": [("greet", {})],
        "jobs": [{"job_type": "greet"}],
        "settings": {},
        "change": {},
        "permissions": ["jobs:read"],
        "prefixes": ["0199a4b0"],
        "disabled": True,
        "priority": 1,
    }
    required = [
        each.name
        for each in inspect.signature(build).parameters.values()
        if each.default is inspect.Parameter.empty
    ]
    id_ = "0199a4b0-0000-7000-8000-000000000000"
    return {each: samples.get(each, id_ if each.endswith("_id") else "word") for each in required}


def test_progress_model_has_documented_fields() -> None:
    assert {"stage", "done", "total", "percent", "message"} == _fields(Progress).keys()
