"""The declaration of an operation: a function without a body, and what its doors must know.

    @operation("GET", "/admin/workers/lanes/{name}", permission="workers:view", scope="lane")
    def get_lane(name: LaneName) -> LaneDetail:
        \"\"\"Return one lane with what waits in it.\"\"\"

Parameters in the path are recognised by name. The others are fields of the body, or of the query of
a GET; a TypedDict or a dataclass stands for its fields. A `Page` is read with `limit` and
`cursor`, which are not declared.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from typing import (
    Any,
    Generic,
    Literal,
    NamedTuple,
    ParamSpec,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from laneway.domain.annotations import bare
from laneway.domain.page import Page

P = ParamSpec("P")
R = TypeVar("R")

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
# lane: the lane that the path names. lanes: those in reach of the caller. all lanes: every lane.
# named lanes: those that the body names in `lanes`; all lanes if it names none.
# everywhere: all lanes and workspaces, for what belongs to none.
# schedule: the schedules of the workspaces and lanes in reach of the caller.
# flow: the flows of the workspaces and owners in reach, unless the grant is limited to lanes.
# workspace: the workspace that the body names, or its own jobs there; not limited to lanes.
Scope = Literal[
    "lane", "lanes", "all lanes", "named lanes", "everywhere", "schedule", "flow", "workspace"
]

Place = Literal["path", "query", "body"]


class Input(NamedTuple):
    """One parameter of an operation."""

    name: str
    hint: Any
    place: Place
    default: Any

    @property
    def is_required(self) -> bool:
        return self.default is inspect.Parameter.empty

    @property
    def is_list(self) -> bool:
        """Whether it takes several values; JSON has them as a list."""
        return get_origin(bare(self.hint)) is Iterable

    @property
    def settings(self) -> dict[str, Any]:
        """The fields of a TypedDict or a dataclass, each with its type; else empty."""
        kind = bare(self.hint)
        has_fields = is_typeddict(kind) or is_dataclass(kind)
        return get_type_hints(kind, include_extras=True) if has_fields else {}


@dataclass(frozen=True, eq=False)
class Operation(Generic[P, R]):
    """One operation; calling it does nothing, but makes a value that a door can do."""

    declared: Callable[P, R]
    method: Method
    path: str
    permission: str
    scope: Scope
    # Fields of the body that need the permission on all lanes.
    all_lanes_for: tuple[str, ...]
    # The command that does it, without `laneway`; None: there is none.
    command: str | None
    status: int
    # Whether an Idempotency-Key makes sure that it is done once.
    takes_key: bool
    # The path of what was created, with fields of the output.
    location: str | None
    # The length of a page unless `limit` asks for another.
    page: int
    # It looks for what its body names, and may not find it.
    may_miss: bool
    # It may read megabytes: it takes a read slot of its caller, and lists are read in portions.
    is_expensive: bool
    # The output is this one field of a JSON object.
    field: str | None
    # The schema of the body in OpenAPI, and the dataclass whose defaults it shows.
    body: str | None
    defaults: type | None

    @property
    def name(self) -> str:
        return self.declared.__name__

    @property
    def description(self) -> str:
        return inspect.getdoc(self.declared) or ""

    @property
    def problems(self) -> tuple[int, ...]:
        """The statuses of failure besides those that every route has."""
        found = {
            404: self.may_miss or self.inputs_of("path"),
            409: self.method != "GET",
            413: self.takes_key or self.inputs_of("body"),
        }
        return tuple(status for status, may_happen in found.items() if may_happen)

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        hints = get_type_hints(self.declared, include_extras=True)
        place: Place = "query" if self.method == "GET" else "body"
        return tuple(
            Input(
                each.name,
                hints[each.name],
                "path" if f"{{{each.name}}}" in self.path else place,
                each.default,
            )
            for each in inspect.signature(self.declared).parameters.values()
        )

    def inputs_of(self, place: Place) -> list[Input]:
        return [each for each in self.inputs if each.place == place]

    @cached_property
    def output(self) -> Any:
        """The type of what it returns."""
        return get_type_hints(self.declared, include_extras=True)["return"]

    @property
    def item(self) -> Any:
        """The type of one item, if it returns a page; else None."""
        return get_args(self.output)[0] if get_origin(self.output) is Page else None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Invocation[R]:
        """The operation with its arguments, for a door to do."""
        return Invocation(self, inspect.signature(self.declared).bind(*args, **kwargs).arguments)

    def given(self, fields: Mapping[str, Any]) -> Invocation[R]:
        """The operation with arguments from fields, of which some make a TypedDict or dataclass."""
        arguments: dict[str, Any] = {}
        for each in self.inputs:
            if each.settings:
                chosen = {n: fields[n] for n in each.settings if n in fields}
                arguments[each.name] = bare(each.hint)(**chosen)
            elif each.name in fields:
                arguments[each.name] = fields[each.name]
        return Invocation(self, arguments)


@dataclass(frozen=True, slots=True)
class Invocation(Generic[R]):
    """An operation and the arguments that are given, by name."""

    operation: Operation[Any, R]
    arguments: dict[str, Any]


def operation(
    method: Method,
    path: str,
    *,
    permission: str,
    scope: Scope,
    command: str | None,
    all_lanes_for: tuple[str, ...] = (),
    status: int = 200,
    takes_key: bool | None = None,
    location: str | None = None,
    page: int = 50,
    may_miss: bool = False,
    is_expensive: bool = False,
    field: str | None = None,
    body: str | None = None,
    defaults: type | None = None,
) -> Callable[[Callable[P, R]], Operation[P, R]]:
    """Declare an operation; the arguments are the fields of `Operation`.

    A POST takes an Idempotency-Key unless `takes_key` is False.
    """
    has_key = method == "POST" if takes_key is None else takes_key

    def declare(declared: Callable[P, R]) -> Operation[P, R]:
        return Operation(
            declared, method, path, permission, scope, all_lanes_for, command, status, has_key,
            location, page, may_miss, is_expensive, field, body, defaults,
        )  # fmt: skip

    return declare
