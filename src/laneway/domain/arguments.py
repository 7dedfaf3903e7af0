"""A handler's parameters: their JSON Schema, and payloads checked and turned into arguments.

`Arguments` checks by the type hints of the handler. Programs that have only the published schema
use `validate_against_schema`. Both follow JSON, not Python's conversions: `"5"` is not an integer,
but an ISO text is a datetime. Both raise InvalidInput with path and rule.
"""

from __future__ import annotations

import copy
import inspect
import json
import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, Union, cast

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, to_jsonable_python

from laneway.domain import json_schema
from laneway.domain.argument_schema import (
    Adapter,
    is_hashable,
    make_adapter,
    schema_of,
    shared_adapter,
)
from laneway.domain.payload_check import REQUIRED, RULE_CHARS, UNKNOWN, problems
from laneway.domain.payload_problems import from_pydantic, from_schema
from laneway.domain.text import escape_text, json_path
from laneway.domain.type_hint import resolve_hint
from laneway.domain.unknown_values import UnknownValues
from laneway.errors import InvalidInput

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
SUMMARY_CHARS: Final = 300
_DEFAULT_CHARS: Final = 60


class Arguments:
    """The arguments that one handler takes besides its Context.

    An application may have thousands of handlers: they share the schemas of equal hints, and the
    validator is built for the first payload.
    """

    __slots__ = (
        "_built",
        "_defaults",
        "_required",
        "_rest",
        "_schema",
        "_shape",
        "_shown_defaults",
        "accepts_any_name",
        "is_plain",
        "name",
    )

    def __init__(
        self, name: str, hints: Mapping[str, Any], defaults: Mapping[str, object], rest: Any
    ) -> None:
        """`rest` is the hint of `**kwargs`, or None when the handler has none."""
        self.name = name
        self._defaults = dict(defaults)
        self._required = frozenset(hints) - frozenset(defaults)
        self.accepts_any_name = rest is not None
        self.is_plain = all(_is_plain(hint) for hint in (*hints.values(), rest or Any))
        self._shape = tuple((k, hint, repr(hint), k in defaults) for k, hint in hints.items())
        self._rest = rest
        self._built: Adapter | None = None
        self._schema = {**schema_of(name, self._shape, rest), "title": name}
        self._shown_defaults = {
            key: _default_json(f"{name}({key})", hints[key], value)
            for key, value in defaults.items()
        }

    @property
    def _adapter(self) -> Adapter:
        """The validator, built at first use, because that takes a millisecond."""
        if self._built is None:
            make = shared_adapter if is_hashable((self._shape, self._rest)) else make_adapter
            self._built = make(self._shape, self._rest, repr(self._rest))
        return self._built

    @classmethod
    def of(
        cls,
        fn: Callable[..., object],
        skip_ctx: bool = True,
        *,
        localns: Mapping[str, object] | None = None,
        default_hints: Mapping[str, object] | None = None,
    ) -> Arguments:
        """The arguments of a handler; `skip_ctx=False` for analyses, which take no Context.

        Raises InvalidInput if they cannot be passed by name from JSON. `localns` resolves hints
        that name classes local to a function; `default_hints` are those of parameters without one.
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
            hint = _hint_of(fn, parameter, place, localns)
            if parameter.annotation is inspect.Parameter.empty and default_hints:
                hint = default_hints.get(parameter.name, hint)
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                rest = hint
                continue
            hints[parameter.name] = hint
            if isinstance(parameter.default, FieldInfo):
                raise InvalidInput(place, "write Annotated[…, Field(…)] and a plain default")
            if parameter.default is not inspect.Parameter.empty:
                defaults[parameter.name] = parameter.default
        made = cls(name, hints, defaults, rest)
        if skip_ctx and (summary := _summary_of(fn)):
            made._schema["description"] = summary
        return made

    def schema(self) -> dict[str, object]:
        """JSON Schema (draft 2020-12) of the payload."""
        schema = copy.deepcopy(self._schema)
        properties = schema.setdefault("properties", {})
        for name, shown in self._shown_defaults.items():
            properties[name]["default"] = copy.deepcopy(shown)
        return {"$schema": DIALECT, **schema}

    @property
    def names(self) -> frozenset[str]:
        """The names of the arguments, without `**kwargs`."""
        return self._required | frozenset(self._defaults)

    @property
    def required(self) -> frozenset[str]:
        """The names of arguments without a default."""
        return self._required

    def accepts_object(self, name: str) -> bool:
        """Whether the hint of an argument accepts a JSON object; one without a schema may."""
        properties = cast("dict[str, Any]", self._schema.get("properties", {}))
        hint = properties.get(name, {})
        return "object" in [one.get("type", "object") for one in hint.get("anyOf", [hint])]

    def with_defaults(self, given: Mapping[str, object]) -> dict[str, object]:
        """The given arguments, and the defaults of the others."""
        return {**self._defaults, **given}

    def validate(self, payload: object) -> dict[str, object]:
        """The keyword arguments for the call, as the hints want them.

        A parameter that the payload does not name keeps its default.
        """
        if not isinstance(payload, dict):
            raise InvalidInput("payload", "must be an object with the arguments by name")
        try:
            # Strict checks of Python values and of JSON agree for builtins only: a datetime would
            # have to be a datetime already.
            if self.is_plain:
                return self._adapter.validate_python(payload)
            text = json.dumps(payload, ensure_ascii=False, allow_nan=False)
            return self._adapter.validate_json(text, strict=True)
        except ValidationError as error:
            raise from_pydantic(error, payload, self.names) from None
        except Exception as error:
            reason = escape_text(f"{type(error).__name__}: {error}")[:RULE_CHARS]
            raise InvalidInput("payload", f"cannot be checked ({reason})") from None

    def encode(self, kwargs: Mapping[str, object]) -> dict[str, object]:
        """Call arguments as JSON values, which `validate` accepts."""
        for name in sorted(self._required - kwargs.keys()):
            raise InvalidInput(json_path("payload", (name,)), REQUIRED)
        if not self.accepts_any_name:
            for name in kwargs:
                if name not in self._required and name not in self._defaults:
                    raise InvalidInput(json_path("payload", (name,)), UNKNOWN)
        unknown = UnknownValues()
        try:
            encoded: dict[str, object] = self._adapter.dump_python(
                dict(kwargs), mode="json", by_alias=True, warnings=False, fallback=unknown
            )
        except Exception as error:
            reason = escape_text(str(error))[:RULE_CHARS]
            raise InvalidInput("payload", f"cannot be written as JSON: {reason}") from None
        unknown.check(encoded, "payload")
        return encoded


def validate_against_schema(schema: Mapping[str, object] | str, payload: object) -> None:
    """Check a payload by the JSON Schema, or its text, that its job type has published.

    A schema of an earlier version that is invalid today checks nothing; the handler does.
    """
    try:
        readable = _read(schema)
    except InvalidInput:
        return
    try:
        found = problems(readable, payload)
    except RecursionError:
        return
    except Exception as error:
        raise InvalidInput("payload", f"cannot be checked ({type(error).__name__})") from None
    if found:
        raise from_schema(found, readable.get("properties", {}))


def check_schema(schema: Mapping[str, object] | str, field: str) -> None:
    """Refuse a schema that `validate_against_schema` could not use."""
    try:
        _read(schema)
    except InvalidInput as error:
        raise InvalidInput(field, error.rule) from None
    except Exception as error:
        raise InvalidInput(field, f"cannot be read ({type(error).__name__})") from None


def _read(schema: Mapping[str, object] | str) -> Mapping[str, Any]:
    return json_schema.read(schema if isinstance(schema, str) else json.dumps(schema))


def _summary_of(fn: Callable[..., object]) -> str:
    """The first paragraph of a handler's docstring, for forms that submit its jobs."""
    written = fn.__doc__ if inspect.isroutine(fn) else None
    paragraph = inspect.cleandoc(written or "").partition("\n\n")[0]
    return escape_text(" ".join(paragraph.split()))[:SUMMARY_CHARS]


def _hint_of(
    fn: Callable[..., object],
    parameter: inspect.Parameter,
    place: str,
    localns: Mapping[str, object] | None,
) -> Any:
    if parameter.annotation is inspect.Parameter.empty:
        return Any
    try:
        return resolve_hint(fn, parameter.annotation, localns)
    except Exception as error:
        raise InvalidInput(place, f"its type hint cannot be resolved: {error}") from None


_PLAIN_HINTS: Final = (Any, object, None, type(None), str, int, float, bool, list, dict)


def _is_plain(hint: Any) -> bool:
    """Whether the hint has only types that Python and JSON share."""
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


def _default_json(place: str, hint: Any, default: object) -> object:
    """A default as JSON; InvalidInput if it has no JSON form, so that it cannot be submitted."""
    try:
        try:
            shown = to_jsonable_python(default, inf_nan_mode="constants")
        except PydanticSerializationError:
            shown = TypeAdapter(hint).dump_python(default, mode="json", warnings=False)
        json.dumps(shown, allow_nan=False)
    except Exception:
        written = escape_text(repr(default))[:_DEFAULT_CHARS]
        rule = f"its default {written} has no JSON form: use None, and replace it in the handler"
        raise InvalidInput(place, rule) from None
    return shown
