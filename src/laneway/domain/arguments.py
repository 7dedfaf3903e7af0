"""A handler's parameters: their JSON Schema, and payloads checked and turned into arguments.

Where the handler's code is at hand, `Arguments` checks by its type hints; a door that knows only
the published schema uses `validate_against_schema`. Both follow JSON, not Python's conversions:
`"5"` is no integer, but an ISO text is a datetime. Both raise InvalidInput with path and rule.
"""

from __future__ import annotations

import copy
import inspect
import json
import types
import typing
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from itertools import islice
from typing import Annotated, Any, Final, Literal, NotRequired, Union

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema, to_jsonable_python
from typing_extensions import TypedDict

from laneway.domain.text import escape_text, json_path
from laneway.errors import InvalidInput

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_CONFIG: Final = ConfigDict(
    extra="forbid",
    strict=True,
    allow_inf_nan=False,
    arbitrary_types_allowed=False,
    # Kept as they are, so that encoding the payload refuses them instead of sending null.
    ser_json_inf_nan="constants",
)
_OPEN_CONFIG: Final = ConfigDict(**{**_CONFIG, "extra": "allow"})

# Made at run time from a signature, which type checkers do not allow for.
_typed_dict: Any = TypedDict

_REQUIRED: Final = "is required"
_UNKNOWN: Final = "is not an argument of this job type"
_MOST_ERRORS: Final = 100
_RULE_CHARS: Final = 300


class Arguments:
    """What one handler takes besides its Context, built once when it is registered."""

    __slots__ = (
        "_accepts_any_name",
        "_adapter",
        "_defaults",
        "_is_plain",
        "_required",
        "_schema",
        "name",
    )

    def __init__(
        self, name: str, hints: Mapping[str, Any], defaults: Mapping[str, object], rest: Any
    ) -> None:
        """`rest` is the hint of `**kwargs`, or None when the handler has none."""
        self.name = name
        self._defaults = dict(defaults)
        self._required = frozenset(hints) - frozenset(defaults)
        self._accepts_any_name = rest is not None
        self._is_plain = all(_is_plain(hint) for hint in (*hints.values(), rest or Any))
        self._adapter, self._schema = _adapter(name, hints, defaults, rest)

    @classmethod
    def of(
        cls,
        fn: Callable[..., object],
        skip_ctx: bool = True,
        *,
        localns: Mapping[str, object] | None = None,
    ) -> Arguments:
        """The arguments of a handler; `skip_ctx=False` for analyses, which take no Context.

        Raises InvalidInput when they cannot be passed by name from JSON. `localns` helps to
        resolve hints that name classes local to a function.
        """
        name = getattr(fn, "__qualname__", type(fn).__name__)
        parameters = list(inspect.signature(fn).parameters.values())
        if skip_ctx:
            if not parameters or parameters[0].kind not in (
                inspect.Parameter.POSITIONAL_ONLY,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
            ):
                raise InvalidInput(name, "a handler's first parameter is its Context")
            del parameters[0]
        hints: dict[str, Any] = {}
        defaults: dict[str, object] = {}
        rest = None
        for parameter in parameters:
            place = f"{name}({parameter.name})"
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                raise InvalidInput(place, "arguments are passed by name; *args cannot be filled")
            if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
                raise InvalidInput(place, "arguments are passed by name; it is positional-only")
            hint = _resolve(fn, parameter, place, localns)
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                rest = hint
                continue
            hints[parameter.name] = hint
            if isinstance(parameter.default, FieldInfo):
                raise InvalidInput(place, "write Annotated[…, Field(…)] and a plain default")
            if parameter.default is not inspect.Parameter.empty:
                defaults[parameter.name] = parameter.default
        return cls(name, hints, defaults, rest)

    def schema(self) -> dict[str, object]:
        """JSON Schema (draft 2020-12) of the payload."""
        schema = copy.deepcopy(self._schema)
        properties = schema.setdefault("properties", {})
        for name, default in self._defaults.items():
            try:
                shown = to_jsonable_python(default, inf_nan_mode="constants")
                json.dumps(shown, allow_nan=False)
            except Exception:  # noqa: S112 -- a default JSON cannot show is simply not shown
                continue
            properties[name]["default"] = shown
        return {"$schema": DIALECT, **schema}

    @property
    def names(self) -> frozenset[str]:
        """The arguments by name, `**kwargs` aside."""
        return self._required | frozenset(self._defaults)

    def with_defaults(self, given: Mapping[str, object]) -> dict[str, object]:
        """The arguments given and the defaults of the others."""
        return {**self._defaults, **given}

    def validate(self, payload: object) -> dict[str, object]:
        """The keyword arguments for the call, as the hints want them.

        A parameter the payload does not name is left to its own default.
        """
        if not isinstance(payload, dict):
            raise InvalidInput("payload", "must be an object that holds the arguments by name")
        try:
            # Strict checking of Python values equals that of JSON for builtins only: a datetime
            # would have to be a datetime already.
            if self._is_plain:
                return self._adapter.validate_python(payload)
            text = json.dumps(payload, ensure_ascii=False, allow_nan=False)
            return self._adapter.validate_json(text, strict=True)
        except ValidationError as error:
            raise _from_pydantic(error, payload) from None
        except Exception as error:
            reason = escape_text(f"{type(error).__name__}: {error}")[:_RULE_CHARS]
            raise InvalidInput("payload", f"cannot be checked ({reason})") from None

    def encode(self, kwargs: Mapping[str, object]) -> dict[str, object]:
        """Call arguments as JSON values; `validate` takes them back."""
        for name in sorted(self._required - kwargs.keys()):
            raise InvalidInput(json_path("payload", (name,)), _REQUIRED)
        if not self._accepts_any_name:
            for name in kwargs:
                if name not in self._required and name not in self._defaults:
                    raise InvalidInput(json_path("payload", (name,)), _UNKNOWN)
        try:
            encoded: dict[str, object] = self._adapter.dump_python(
                dict(kwargs), mode="json", by_alias=True, warnings=False
            )
        except Exception as error:
            reason = escape_text(str(error))[:_RULE_CHARS]
            raise InvalidInput("payload", f"cannot be written as JSON: {reason}") from None
        return encoded


def validate_against_schema(schema: Mapping[str, object], payload: object) -> None:
    """Checks a payload by the JSON Schema its job type has published."""
    try:
        validator = _validator(json.dumps(schema, sort_keys=True))
        errors = list(islice(validator.iter_errors(payload), _MOST_ERRORS))
    except InvalidInput:
        raise
    except Exception as error:
        raise InvalidInput("payload", f"cannot be checked ({type(error).__name__})") from None
    if errors:
        keys, rule = _from_jsonschema(errors[0])
        raise InvalidInput(json_path("payload", keys), _counted(rule, len(errors)))


def check_schema(schema: Mapping[str, object], field: str) -> None:
    """Refuses what `validate_against_schema` could not check anything by."""
    try:
        _validator(json.dumps(schema, sort_keys=True))
    except InvalidInput as error:
        raise InvalidInput(field, error.rule) from None
    except Exception as error:
        raise InvalidInput(field, f"cannot be read ({type(error).__name__})") from None


class _SchemaGenerator(GenerateJsonSchema):
    """Says no more than validation enforces: a set takes an array with repeated items."""

    def set_schema(self, schema: core_schema.SetSchema) -> JsonSchemaValue:
        shown = super().set_schema(schema)
        shown.pop("uniqueItems", None)
        return shown

    def frozenset_schema(self, schema: core_schema.FrozenSetSchema) -> JsonSchemaValue:
        shown = super().frozenset_schema(schema)
        shown.pop("uniqueItems", None)
        return shown


def _resolve(
    fn: Callable[..., object],
    parameter: inspect.Parameter,
    place: str,
    localns: Mapping[str, object] | None,
) -> Any:
    """The hint of one parameter, alone: a Context imported for type checkers only must not hurt."""
    if parameter.annotation is inspect.Parameter.empty:
        return Any
    code = fn
    while isinstance(code, partial):
        code = code.func
    code = inspect.unwrap(code)
    code = getattr(code, "__func__", code)
    holder = types.SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    try:
        hints = typing.get_type_hints(
            holder,
            globalns=getattr(code, "__globals__", {}),
            localns=dict(localns or {}),
            include_extras=True,
        )
    except Exception as error:
        raise InvalidInput(place, f"its type hint cannot be resolved: {error}") from None
    return hints[parameter.name]


_Checker = tuple[TypeAdapter[dict[str, object]], dict[str, Any]]
# Each argument: name, hint, the hint as written (for 1 equals True), whether it has a default.
_Shape = tuple[tuple[str, Any, str, bool], ...]


def _adapter(
    name: str, hints: Mapping[str, Any], defaults: Mapping[str, object], rest: Any
) -> _Checker:
    """What checks the arguments, and their schema; shared, for making one takes a millisecond."""
    shape = tuple((key, hint, repr(hint), key in defaults) for key, hint in hints.items())
    make = _shared_checker if _is_hashable((shape, rest)) else _checker
    try:
        adapter, schema = make(shape, rest, repr(rest))
    except Exception as error:
        culprit = next((key for key, hint in hints.items() if not _is_jsonable(hint)), "**")
        reason = str(error).splitlines()[0][:_RULE_CHARS]
        raise InvalidInput(f"{name}({culprit})", f"its type has no JSON form: {reason}") from None
    return adapter, {**schema, "title": name}


def _checker(shape: _Shape, rest: Any, _written: str) -> _Checker:
    # A TypedDict, because it validates straight into keyword arguments and, unlike a model,
    # takes any parameter name.
    keys = {key: NotRequired[hint] if has_default else hint for key, hint, _, has_default in shape}
    made = _typed_dict("Arguments", keys, **({} if rest is None else {"extra_items": rest}))
    made.__pydantic_config__ = _CONFIG if rest is None else _OPEN_CONFIG
    adapter: TypeAdapter[dict[str, object]] = TypeAdapter(made)
    return adapter, adapter.json_schema(schema_generator=_SchemaGenerator)


_shared_checker = lru_cache(maxsize=1024)(_checker)


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _is_jsonable(hint: Any) -> bool:
    try:
        TypeAdapter(hint).json_schema()
    except Exception:
        return False
    return True


_PLAIN_HINTS: Final = (Any, object, None, type(None), str, int, float, bool, list, dict)


def _is_plain(hint: Any) -> bool:
    """Whether the hint is made only of types that Python and JSON share."""
    if any(hint is plain for plain in _PLAIN_HINTS):
        return True
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _is_plain(args[0])
    if origin is Literal:
        return all(value is None or type(value) in (str, int, bool) for value in args)
    if origin is dict:
        return args[0] is str and _is_plain(args[1])
    return origin in (list, Union, types.UnionType) and all(_is_plain(arg) for arg in args)


def _from_pydantic(error: ValidationError, payload: object) -> InvalidInput:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    missing = first["type"] in ("missing", "missing_argument", "missing_keyword_only_argument")
    keys: list[object] = []
    node = payload
    # pydantic also names the union member it tried; only steps the payload has are shown.
    for i, key in enumerate(first["loc"]):
        if _has(node, key):
            node = node[key]  # type: ignore[index]
        elif not (missing and i == len(first["loc"]) - 1):
            continue
        keys.append(key)
    if missing:
        rule = _REQUIRED
    elif first["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        rule = _UNKNOWN
    else:
        rule = escape_text(first["msg"].replace("Input should be", "must be"))[:_RULE_CHARS]
    return InvalidInput(json_path("payload", keys), _counted(rule, error.error_count()))


def _has(node: object, key: object) -> bool:
    if isinstance(node, dict):
        return key in node
    return isinstance(node, list) and isinstance(key, int) and 0 <= key < len(node)


def _counted(rule: str, problems: int) -> str:
    if problems < 2:
        return rule
    more = f"at least {problems - 1}" if problems >= _MOST_ERRORS else f"{problems - 1}"
    return f"{rule} (and {more} more)"


@lru_cache(maxsize=1024)
def _validator(schema_text: str) -> Any:
    # Imported here: it is slow to load, and processes that run handlers do without.
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped, unused-ignore]
    from jsonschema.exceptions import SchemaError  # type: ignore[import-untyped, unused-ignore]
    from jsonschema.validators import extend  # type: ignore[import-untyped, unused-ignore]
    from referencing import Registry

    schema = json.loads(schema_text)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise InvalidInput("schema", f"is no JSON Schema: {error.message[:_RULE_CHARS]}") from None
    # 5.0 is an integer to JSON Schema but not to a handler's `int`: the doors must agree.
    types_ = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _checker, value: isinstance(value, int) and not isinstance(value, bool)
    )
    # An empty registry: a published schema must not make this process fetch anything.
    untyped: Any = extend
    return untyped(Draft202012Validator, type_checker=types_)(schema, registry=Registry())


_COMPARISONS: Final = {
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
    "exclusiveMinimum": "must be greater than {}",
    "exclusiveMaximum": "must be less than {}",
    "multipleOf": "must be a multiple of {}",
    "minLength": "must be at least {} characters long",
    "maxLength": "must be at most {} characters long",
    "minItems": "must have at least {} items",
    "maxItems": "must have at most {} items",
    "pattern": "must match the pattern {}",
    "enum": "must be one of {}",
    "const": "must be {}",
    "type": "must be of type {}",
}


def _from_jsonschema(error: Any) -> tuple[list[object], str]:
    keys: list[object] = list(error.absolute_path)
    wanted = error.validator_value
    if error.validator == "required":
        # One error per missing name; only its message tells which.
        keys += [name for name in wanted if error.message.startswith(repr(name) + " ")][:1]
        return keys, _REQUIRED
    if error.validator == "additionalProperties":
        known = error.schema.get("properties", {})
        keys += [name for name in error.instance if name not in known][:1]
        return keys, _UNKNOWN
    if error.validator in ("anyOf", "oneOf"):
        deeper = [inner for inner in error.context if len(inner.absolute_path) > len(keys)]
        if deeper:
            return _from_jsonschema(deeper[0])
        rules = dict.fromkeys(_from_jsonschema(inner)[1] for inner in error.context)
        return keys, " or ".join(rules)[:_RULE_CHARS]
    shown = json.dumps(wanted, ensure_ascii=False)
    template = _COMPARISONS.get(error.validator, f"must satisfy {error.validator} {{}}")
    return keys, escape_text(template.format(shown))[:_RULE_CHARS]
