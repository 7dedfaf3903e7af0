"""A handler's parameters, by its hints and by the schema it publishes."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, Optional, get_type_hints
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped, unused-ignore]
from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    PlainSerializer,
    PlainValidator,
    TypeAdapter,
)
from typing_extensions import TypedDict

from laneway.domain.arguments import (
    SUMMARY_CHARS,
    Arguments,
    check_schema,
    validate_against_schema,
)
from laneway.domain.payload import encode
from laneway.errors import InvalidInput

if TYPE_CHECKING:
    from laneway import Context


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Author(BaseModel):
    name: str
    born: date | None = None


@dataclass
class Page:
    number: int
    text: str = ""


class Options(TypedDict):
    deep: bool
    limit: NotRequired[int]


async def ingest(ctx: Context, path: str, pages: int = 10) -> dict[str, object]:
    return {}


async def rich(
    ctx: Context,
    author: Author,
    at: datetime,
    page: Page | None = None,
    colour: Colour = Colour.RED,
    kind: Literal["a", "b"] = "a",
    options: Options | None = None,
    ids: frozenset[UUID] = frozenset(),
    price: Decimal = Decimal("1.5"),
    pair: tuple[int, str] = (1, "x"),
    every: timedelta = timedelta(seconds=1),
    home: Path | None = None,
) -> None: ...


def anything(ctx: Context, **payload: Any) -> None: ...


def counts(ctx: Context, name: str, **numbers: int) -> None: ...


def plan(index: str) -> None: ...


def nothing(ctx: Context) -> None: ...


def refused(check: Callable[[], object]) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        check()
    return caught.value


def takes(check: Callable[[], object]) -> bool:
    try:
        check()
    except InvalidInput:
        return False
    return True


def test_payload_becomes_the_keyword_arguments_of_the_call() -> None:
    arguments = Arguments.of(ingest)
    payload = {"path": "a.pdf", "pages": 3}
    assert arguments.validate(payload) == payload
    assert arguments.validate(payload) is not payload


def test_missing_arguments_use_handler_defaults() -> None:
    assert Arguments.of(ingest).validate({"path": "a.pdf"}) == {"path": "a.pdf"}


def test_values_are_converted_as_the_hints_want_them() -> None:
    given_ = {
        "author": {"name": "Ada", "born": "1815-12-10"},
        "at": "2026-01-01T00:00:00Z",
        "page": {"number": 1},
        "colour": "blue",
        "kind": "b",
        "options": {"deep": True},
        "ids": ["00000000-0000-0000-0000-000000000001"] * 2,
        "price": "2.50",
        "pair": [2, "y"],
        "every": "PT5S",
        "home": "a/b",
    }
    assert Arguments.of(rich).validate(given_) == {
        "author": Author(name="Ada", born=date(1815, 12, 10)),
        "at": datetime(2026, 1, 1, tzinfo=UTC),
        "page": Page(1),
        "colour": Colour.BLUE,
        "kind": "b",
        "options": {"deep": True},
        "ids": frozenset({UUID(int=1)}),
        "price": Decimal("2.50"),
        "pair": (2, "y"),
        "every": timedelta(seconds=5),
        "home": Path("a/b"),
    }


def test_call_arguments_survive_the_way_through_json() -> None:
    arguments = Arguments.of(rich)
    kwargs: dict[str, object] = {
        "author": Author(name="Ada"),
        "at": datetime(2026, 1, 1, tzinfo=UTC),
        "page": Page(4, "x"),
        "colour": Colour.BLUE,
        "ids": frozenset({UUID(int=2)}),
        "price": Decimal("9.99"),
        "pair": (3, "z"),
        "every": timedelta(minutes=2),
    }
    encoded = arguments.encode(kwargs)
    assert arguments.validate(json.loads(encode(encoded))) == kwargs
    validate_against_schema(arguments.schema(), encoded)


@given(st.text(), st.integers(-1000, 1000))
def test_plain_call_arguments_are_encoded_as_they_are(path: str, pages: int) -> None:
    assert Arguments.of(ingest).encode({"path": path, "pages": pages}) == {
        "path": path,
        "pages": pages,
    }


@pytest.mark.parametrize(
    "kwargs, field, rule",
    [
        ({}, "payload.path", "is required"),
        ({"path": "x", "page": 1}, "payload.page", "is not an argument"),
        ({"path": object()}, "payload.path", "an object is not a JSON value"),
    ],
)
def test_call_arguments_that_do_not_fit_are_refused(
    kwargs: dict[str, object], field: str, rule: str
) -> None:
    error = refused(lambda: Arguments.of(ingest).encode(kwargs))
    assert error.field == field
    assert rule in error.rule


def test_nan_is_not_turned_into_null() -> None:
    def score(ctx: Context, value: float) -> None: ...

    encoded = Arguments.of(score).encode({"value": float("nan")})
    assert refused(lambda: encode(encoded)).field == "payload.value"
    assert refused(lambda: Arguments.of(score).validate(encoded)).field == "payload.value"


@pytest.mark.parametrize(
    "payload, field, rule",
    [
        ({}, "payload.path", "is required"),
        ({"path": "x", "pages": "5"}, "payload.pages", "must be a valid integer"),
        ({"path": "x", "pages": 5.0}, "payload.pages", "must be a valid integer"),
        ({"path": "x", "pages": True}, "payload.pages", "must be a valid integer"),
        ({"path": 5}, "payload.path", "must be a valid string"),
        ({"path": None}, "payload.path", "must be a valid string"),
        ({"path": "x", "pgaes": 5}, "payload.pgaes", "is not an argument of this job type"),
        ({"path": "x", "a b": 5}, 'payload["a b"]', "is not an argument of this job type"),
        ([], "payload", "must be an object"),
        (None, "payload", "must be an object"),
        ("path", "payload", "must be an object"),
    ],
)
def test_first_problem_is_named_by_path_and_rule(payload: object, field: str, rule: str) -> None:
    error = refused(lambda: Arguments.of(ingest).validate(payload))
    assert error.field == field
    assert rule in error.rule
    assert "more" not in error.rule


def test_other_problems_are_counted() -> None:
    payload = {"path": 1, "pages": "x", "other": 2}
    assert "(and 2 more problems)" in refused(lambda: Arguments.of(ingest).validate(payload)).rule
    schema = Arguments.of(ingest).schema()
    assert "(and 2 more problems)" in refused(lambda: validate_against_schema(schema, payload)).rule


@pytest.mark.parametrize(
    "payload, field, rule",
    [
        ({"pth": "x"}, "payload.pth", "; did you mean path, which is required?"),
        ({"path": "x", "pgaes": 5}, "payload.pgaes", "; did you mean pages?"),
        ({"zzz": 5, "pages": 1}, "payload.zzz", "job type; path is required"),
    ],
)
def test_misspelt_argument_is_named_before_the_missing_one(
    payload: dict[str, object], field: str, rule: str
) -> None:
    schema = Arguments.of(ingest).schema()
    for error in (
        refused(lambda: Arguments.of(ingest).validate(payload)),
        refused(lambda: validate_against_schema(schema, payload)),
    ):
        assert error.field == field
        assert error.rule.endswith(rule)


@pytest.mark.parametrize(
    "change, field",
    [
        ({"author": {}}, "payload.author.name"),
        ({"author": {"name": "x", "born": "yesterday"}}, "payload.author.born"),
        ({"page": {"number": "1"}}, "payload.page.number"),
        ({"at": 5}, "payload.at"),
        ({"colour": "green"}, "payload.colour"),
        ({"options": {"deep": 1}}, "payload.options.deep"),
        ({"ids": ["x"]}, "payload.ids[0]"),
        ({"pair": [1]}, "payload.pair[1]"),
    ],
)
def test_problem_deep_inside_is_named_by_its_whole_path(
    change: dict[str, object], field: str
) -> None:
    payload = {"author": {"name": "Ada"}, "at": "2026-01-01T00:00:00Z", **change}
    assert refused(lambda: Arguments.of(rich).validate(payload)).field == field


def test_handler_with_open_keywords_accepts_any_object() -> None:
    arguments = Arguments.of(anything)
    payload = {"a": {"b": [1, None]}, "self": 1, "ctx_": 2}
    assert arguments.validate(payload) == payload
    assert arguments.encode(payload) == payload
    assert arguments.schema()["additionalProperties"] is True
    refused(lambda: arguments.validate([1]))


def test_open_keywords_with_a_hint_are_checked_by_it() -> None:
    arguments = Arguments.of(counts)
    assert arguments.validate({"name": "x", "a": 1}) == {"name": "x", "a": 1}
    assert refused(lambda: arguments.validate({"name": "x", "a": "1"})).field == "payload.a"
    schema = arguments.schema()
    assert refused(lambda: validate_against_schema(schema, {"name": "x", "a": "1"})).field == (
        "payload.a"
    )


def test_analysis_takes_no_context() -> None:
    assert Arguments.of(plan, skip_ctx=False).validate({"index": "i"}) == {"index": "i"}
    assert Arguments.of(nothing).validate({}) == {}


def test_parameter_names_that_a_model_could_not_have_are_fine() -> None:
    def odd(ctx: Context, _x: int, model_config: int, json: str, schema: int = 1) -> None: ...

    payload = {"_x": 1, "model_config": 2, "json": "j", "schema": 3}
    assert Arguments.of(odd).validate(payload) == payload
    validate_against_schema(Arguments.of(odd).schema(), payload)


def test_partials_and_wrapped_functions_keep_their_hints() -> None:
    @functools.wraps(ingest)
    async def wrapped(*args: Any, **kwargs: Any) -> Any: ...

    assert Arguments.of(wrapped).validate({"path": "x"}) == {"path": "x"}
    bound = functools.partial(ingest, pages=3)
    assert refused(lambda: Arguments.of(bound).validate({"path": 1})).field == "payload.path"


def test_hints_of_local_classes_resolve_with_their_namespace() -> None:
    class Local(BaseModel):
        x: int

    def handler(ctx: Context, thing: Local) -> None: ...

    assert refused(lambda: Arguments.of(handler)).rule.startswith("its type hint")
    arguments = Arguments.of(handler, localns=locals())
    assert arguments.validate({"thing": {"x": 1}}) == {"thing": Local(x=1)}


def test_handlers_whose_arguments_cannot_come_from_json_are_refused() -> None:
    def no_context() -> None: ...
    def starred(ctx: Context, *rest: int) -> None: ...
    def positional(ctx: Context, x: int, /) -> None: ...
    def opaque(ctx: Context, fine: int, error: BaseException) -> None: ...
    def unknown(ctx: Context, x: Nowhere) -> None: ...  # type: ignore[name-defined] # noqa: F821
    def field_default(ctx: Context, x: int = Field(3, gt=1)) -> None: ...

    cases: list[tuple[Callable[..., object], str]] = [
        (no_context, "no_context"),
        (starred, "starred(rest)"),
        (positional, "positional(x)"),
        (opaque, "opaque(error)"),
        (unknown, "unknown(x)"),
        (field_default, "field_default(x)"),
    ]
    for handler, culprit in cases:
        assert refused(functools.partial(Arguments.of, handler)).field.endswith(culprit)


def test_validator_that_breaks_refuses_the_payload_only() -> None:
    def explode(value: int) -> int:
        raise RuntimeError("boom\x00")

    def handler(ctx: Context, x: Annotated[int, AfterValidator(explode)]) -> None: ...

    arguments = Arguments.of(handler, localns=locals())
    error = refused(lambda: arguments.validate({"x": 1}))
    assert "boom" in error.rule
    assert "\x00" not in error.rule


def test_schema_is_draft_2020_12_and_shows_the_defaults() -> None:
    schema = Arguments.of(ingest).schema()
    Draft202012Validator.check_schema(schema)
    assert schema == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "additionalProperties": False,
        "properties": {
            "path": {"title": "Path", "type": "string"},
            "pages": {"title": "Pages", "type": "integer", "default": 10},
        },
        "required": ["path"],
        "title": "ingest",
        "type": "object",
    }
    encode(Arguments.of(rich).schema())


def test_schema_describes_the_job_by_the_first_paragraph_of_its_handler() -> None:
    def described(ctx: Context, x: int) -> None:
        """Counts the pages
        of one \udc00 document.

        Not this.
        """

    def plan(x: int) -> None:
        """An analysis."""

    def long(ctx: Context) -> None: ...

    long.__doc__ = "x" * 1000
    schema = Arguments.of(described).schema()
    assert schema["description"] == "Counts the pages of one \ufffd document."
    encode(schema)
    assert len(str(Arguments.of(long).schema()["description"])) == SUMMARY_CHARS
    assert "description" not in Arguments.of(plan, skip_ctx=False).schema()


@pytest.mark.parametrize("default", [float("nan"), float("inf"), object(), print, {1: object()}])
def test_default_without_json_form_is_refused(default: object) -> None:
    def handler(ctx: Context, x: object = default) -> None: ...

    error = refused(lambda: Arguments.of(handler))
    assert error.field.endswith("handler(x)")
    assert "has no JSON form: use None" in error.rule


def test_default_with_a_json_form_is_shown() -> None:
    class Opaque:
        pass

    as_text = Annotated[
        Opaque,
        PlainValidator(lambda _: Opaque(), json_schema_input_type=str),
        PlainSerializer(lambda _: "opaque", return_type=str),
    ]

    def handler(
        ctx: Context,
        path: Path = Path("a.pdf"),
        page: Page = Page(1),  # noqa: B008
        own: as_text = Opaque(),  # noqa: B008
        missing: str = None,  # type: ignore[assignment] # noqa: RUF013
    ) -> None: ...

    schema: Any = Arguments.of(handler, localns=locals()).schema()
    encode(schema)
    shown = {name: each["default"] for name, each in schema["properties"].items()}
    assert shown == {
        "path": "a.pdf",
        "page": {"number": 1, "text": ""},
        "own": "opaque",
        "missing": None,
    }


SAMPLES: list[object] = [
    None,
    True,
    0,
    1,
    1.0,
    -5,
    5.0,
    1.5,
    "",
    "5",
    "red",
    "2026-01-01T00:00:00Z",
    "00000000-0000-0000-0000-000000000001",
    [],
    [1],
    [1, 1],
    ["x"],
    [1, "x"],
    {},
    {"name": "Ada"},
    {"name": 5},
    {"name": "Ada", "extra": 1},
    {"number": 1},
    {"number": 1.0},
    {"deep": True},
    {"deep": True, "limit": "1"},
    {"a": 1},
    {"a": "1"},
]

HINTS: list[Any] = [
    int,
    float,
    str,
    bool,
    None,
    Any,
    object,
    int | None,
    Optional[str],  # noqa: UP045
    int | str,
    list[int],
    list[Any],
    set[int],
    frozenset[str],
    tuple[int, str],
    tuple[int, ...],
    dict[str, int],
    dict[str, Any],
    Literal["red", "blue"],
    Literal["red", None],
    Colour,
    Author,
    Page,
    Options,
    list[Author],
    Author | None,
    Annotated[int, Field(ge=1, lt=5)],
    Annotated[str, Field(min_length=1, max_length=3)],
    Annotated[list[int], Field(min_length=1)],
]


@pytest.mark.parametrize("hint", HINTS, ids=str)
def test_hints_and_schema_agree_on_every_sample(hint: Any) -> None:
    arguments = Arguments("handler", {"x": hint}, {}, None)
    schema = arguments.schema()
    for value in SAMPLES:
        payload = {"x": value}
        by_hints = takes(functools.partial(arguments.validate, payload))
        by_schema = takes(functools.partial(validate_against_schema, schema, payload))
        assert by_hints == by_schema, payload


@pytest.mark.parametrize("hint", [datetime, UUID, timedelta, Path, Decimal], ids=str)
def test_schema_accepts_everything_hints_accept(hint: Any) -> None:
    """Formats are left to the handler's side."""
    arguments = Arguments("handler", {"x": hint}, {}, None)
    schema = arguments.schema()
    for value in SAMPLES:
        if takes(functools.partial(arguments.validate, {"x": value})):
            validate_against_schema(schema, {"x": value})


@pytest.mark.parametrize(
    "payload, field, rule",
    [
        ({}, "payload.path", "is required"),
        ({"path": "x", "pages": "5"}, "payload.pages", 'must be of type "integer"'),
        ({"path": "x", "pages": 5.0}, "payload.pages", 'must be of type "integer"'),
        ({"path": "x", "pgaes": 5}, "payload.pgaes", "is not an argument of this job type"),
        ([], "payload", 'must be of type "object"'),
    ],
)
def test_schema_alone_names_the_same_places(payload: object, field: str, rule: str) -> None:
    schema = Arguments.of(ingest).schema()
    error = refused(lambda: validate_against_schema(schema, payload))
    assert error.field == field
    assert rule in error.rule


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"x": {"$ref": "http://127.0.0.1:9/schema.json"}}},
        {"type": "nonsense"},
        {"type": 5},
        {"$ref": "#/$defs/gone"},
        {"$ref": "#"},
    ],
)
def test_stored_schema_that_cannot_be_read_is_left_to_the_handler(
    schema: dict[str, object],
) -> None:
    refused(lambda: check_schema(schema, "arguments"))
    validate_against_schema(schema, {"x": 1})


def test_handlers_with_same_arguments_share_their_checks_but_not_their_names() -> None:
    def first(ctx: Any, a: Literal[1], b: list[int] = []) -> None: ...  # noqa: B006
    def second(ctx: Any, a: Literal[1], b: list[int] = [3]) -> None: ...  # noqa: B006
    def third(ctx: Any, a: Literal[True], b: list[int] = []) -> None: ...  # noqa: B006

    one, two, three = (Arguments.of(fn).schema() for fn in (first, second, third))
    assert (one["title"], two["title"]) != (two["title"], one["title"])
    assert one["properties"]["a"] == two["properties"]["a"] != three["properties"]["a"]  # type: ignore[index]
    assert [each["properties"]["b"]["default"] for each in (one, two)] == [[], [3]]  # type: ignore[index]


def test_combined_schema_of_hints_equals_pydantic_schema() -> None:
    def mixed(
        ctx: Any,
        path: str,
        first_page: Annotated[int, Field(ge=1, description="From here")],
        titled: Annotated[int, Field(title="Laneway")],
        when: datetime | None = None,
        kind: Literal["a", 1] = "a",
        anything: Any = None,
        parts: dict[str, list[float]] = {},  # noqa: B006
    ) -> None: ...

    hints = {
        name: each if name in ("path", "first_page", "titled") else NotRequired[each]
        for name, each in get_type_hints(mixed, include_extras=True).items()
        if name not in ("ctx", "return")
    }
    make: Any = TypedDict
    made = make("mixed", hints)
    made.__pydantic_config__ = {"extra": "forbid", "title": Arguments.of(mixed).name}
    shown: Any = Arguments.of(mixed).schema()
    for each in shown["properties"].values():
        each.pop("default", None)
    assert shown == {"$schema": shown["$schema"], **TypeAdapter(made).json_schema()}


def test_many_handlers_with_equal_hints_are_checked_at_first_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[object] = []

    def counted(kind: Any) -> TypeAdapter[Any]:
        made.append(kind)
        return TypeAdapter(kind)

    monkeypatch.setattr("laneway.domain.argument_schema.TypeAdapter", counted)
    of: dict[str, Any] = {}
    for n in range(50):
        exec(f"def f{n}(ctx, a{n}: bytes, b{n}: frozenset[bytes]) -> None: ...", of)  # noqa: S102
    known = [Arguments.of(of[f"f{n}"]) for n in range(50)]
    assert len(made) <= 2
    assert [f"a{n}" in one.names for n, one in enumerate(known)] == [True] * 50
    refused(lambda: known[7].validate({"a7": 1, "b7": []}))
    assert known[7].validate({"a7": "x", "b7": []}) == {"a7": b"x", "b7": frozenset()}
    assert len(made) <= 3
