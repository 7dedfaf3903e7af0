"""JSON in and out of PostgreSQL: values that jsonb or Python cannot handle are refused by name.

`encode` is for incoming values (payloads, results, checkpoints), `decode` for stored ones, which
other programs may have written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from functools import cache
from math import isfinite
from typing import Final, NoReturn

from laneway.domain.json_place import deep_path
from laneway.domain.json_scan import has_long_number, is_rewritten_number
from laneway.domain.payload_survey import PLAIN, HeavyTree, survey
from laneway.domain.text import check_text, escape_text, json_path, text_problem
from laneway.domain.unknown_values import not_json
from laneway.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class PayloadLimits:
    """The largest payload, its parts, a batch of payloads, and a step's result."""

    max_bytes: int = 1024 * 1024
    max_depth: int = 64
    max_digits: int = 308
    key_bytes: int = 512
    batch_jobs: int = 1000
    batch_bytes: int = 16 * 1024 * 1024
    step_bytes: int = 1024 * 1024

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) < 1:
                raise InvalidInput(field.name, "must be at least 1")
        # An ordinary float has up to 17 digits; above 4300 Python refuses to read an integer.
        if not 17 <= self.max_digits <= 4300:
            raise InvalidInput("max_digits", "must be between 17 and 4300")


DEFAULT_LIMITS: Final = PayloadLimits()

_WITHOUT_FLOATS: Final = PLAIN - {float}

_HINTS: Final = {
    "datetime": "send .isoformat()",
    "date": "send .isoformat()",
    "time": "send .isoformat()",
    "timedelta": "send .total_seconds()",
    "set": "send a list",
    "frozenset": "send a list",
    "bytes": "send text, or base64",
    "Decimal": "send a str",
    "UUID": "send str(…)",
}

_REFUSED_ESCAPE: Final = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
# A whole string, or outside of strings a number with a positive exponent. Possessive, and an
# unclosed string extends to the end: no quote is tried twice.
_EXPONENT: Final = re.compile(
    r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?+\Z)|(?<![0-9.])(-?[0-9.]+e\+[0-9]+)', re.DOTALL
)
_REWRITTEN: Final = (b"\\u", b"NaN", b"Infinity")
_LONG_ZEROS: Final = re.compile(r"0{17,}")
_PATH_CHARS: Final = 200


def _make_encoder() -> Callable[[object], str]:
    encoder = json.JSONEncoder(
        ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
    )
    # `encode` builds this again for every value, which costs more than writing a small one.
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return encoder.encode
    quote = json.encoder.encode_basestring
    parts = make(None, encoder.default, quote, None, ":", ",", False, False, False)
    return lambda value: "".join(parts(value, 0))


_encode_json = _make_encoder()


def encode(value: object, *, limits: PayloadLimits = DEFAULT_LIMITS, field: str = "payload") -> str:
    """JSON text that PostgreSQL accepts as jsonb and Python reads back, or InvalidInput.

    The value has JSON types, or is a pydantic model or dataclass. The error names the place and the
    rule: `payload.items[3].name: contains a NUL character …`.
    """
    try:
        if type(value) not in PLAIN:
            value = _from_model(value, field)
        kinds = _survey(value, limits, field)
        if kinds is None or not kinds <= PLAIN:
            _refuse_first_problem(value, limits, field)
        text = _encode_json(value)
        # The text shows cheaply whether the tree needs a walk: a NUL is always this escape, a long
        # integer needs its digits, and a float beyond 1e16 has an exponent.
        is_written_out = "e+" in text and (kinds is None or not kinds <= _WITHOUT_FLOATS)
        if (
            is_written_out
            or "\\u0000" in text
            or (
                len(text) > limits.max_digits
                and has_long_number(text.encode(errors="replace"), limits.max_digits)
            )
        ):
            _refuse_first_problem(value, limits, field)
        if is_written_out:
            text = _EXPONENT.sub(_write_out, text)
        size = len(text)
        if size <= limits.max_bytes and not text.isascii():
            size = len(text.encode())
        if size > limits.max_bytes:
            _refuse_size(size, limits, field)
    except InvalidInput:
        raise
    except Exception as error:
        raise _problem_of(error, value, limits, field) from None
    return text


class JsonText(str):
    """A payload that `encode` has already checked and written."""

    __slots__ = ()


def keep_text(text: str, value: object, *, limits: PayloadLimits, field: str) -> str:
    """The text that a value was read from, if `encode` would not rewrite it; else `encode`."""
    data = text.encode()
    # PostgreSQL stores the same value, except for escapes, for numbers that `encode` rounds or
    # shortens, and for words that are not JSON.
    if (
        len(data) <= limits.max_bytes
        and not any(word in data for word in _REWRITTEN)
        and not is_rewritten_number(data)
        and survey(value, limits.max_depth) is not None
    ):
        return text
    return encode(value, limits=limits, field=field)


def decode(
    text: str | bytes, limits: PayloadLimits = DEFAULT_LIMITS, *, field: str = "payload"
) -> object:
    """The value of a JSON text, under the same rules as `encode`; raises only InvalidInput.

    It accepts everything that `encode` accepted, also as PostgreSQL writes it: with a space after
    each comma and colon, and every number in full.
    """
    try:
        if isinstance(text, (bytes, bytearray, memoryview)):
            text = bytes(text).decode()
        elif not isinstance(text, str):
            raise InvalidInput(field, f"must be JSON text, not {type(text).__name__}")
        if len(text) <= min(limits.max_digits, limits.max_bytes):
            flat = _parse_flat(text)
            if flat is not None:
                return flat
        if len(text) > limits.max_bytes or not text.isascii():
            size = len(text.encode())
            if size > 2 * limits.max_bytes:
                size = len(_LONG_ZEROS.sub("", text).encode())
            if size > 2 * limits.max_bytes:
                _refuse_size(size, limits, field)
        if _odd_number(limits.max_digits).search(text):
            value = _parse_odd(text, limits)
        else:
            value = _parse(text)
        kinds = survey(value, limits.max_depth)
        if kinds is None or not kinds <= PLAIN or ("\\u" in text and _REFUSED_ESCAPE.search(text)):
            _refuse_first_problem(value, limits, field, weigh=False)
    except InvalidInput:
        raise
    except RecursionError:
        raise InvalidInput(deep_path(text, field, limits.max_depth), _depth_rule(limits)) from None
    except UnicodeError:
        raise InvalidInput(field, "is not valid UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise InvalidInput(field, f"is not JSON: {error.msg} at character {error.pos}") from None
    except Exception as error:
        raise InvalidInput(field, f"cannot be read ({type(error).__name__})") from None
    return value


def check_key(value: object, field: str, limits: PayloadLimits = DEFAULT_LIMITS) -> str:
    """A `unique_key` or idempotency key: text of 1 to 512 bytes, to fit an index row."""
    return check_text(value, field, max_bytes=limits.key_bytes)


class _BadNumber:
    """Replaces a refused number in a parsed tree."""

    __slots__ = ("rule",)

    def __init__(self, rule: str) -> None:
        self.rule = rule


def _bad_constant(_name: str) -> object:
    return _BadNumber("NaN and Infinity are not JSON numbers")


_decoder: Final = json.JSONDecoder(parse_constant=_bad_constant)
_parse = _decoder.decode
_FLAT: Final = frozenset({str, int, bool, type(None)})


def _parse_flat(text: str) -> dict[str, object] | None:
    """The object of a short text, if nothing in it needs a check; None: it may need one.

    Without escapes, other characters than ASCII, floats and nesting, every rule is kept.
    """
    if not text.isascii() or "\\" in text:
        return None
    try:
        value, end = _decoder.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    if (
        end != len(text)
        or type(value) is not dict
        or not _FLAT.issuperset(map(type, value.values()))
    ):
        return None
    return value


class _ValuePath:
    """The path of a value in its tree, rendered only for an error."""

    __slots__ = ("key", "parent")

    def __init__(self, parent: _ValuePath | None, key: object) -> None:
        self.parent = parent
        self.key = key

    def path(self, field: str) -> str:
        keys = []
        place: _ValuePath | None = self
        while place is not None:
            keys.append(place.key)
            place = place.parent
        return json_path(field, reversed(keys))


def _survey(value: object, limits: PayloadLimits, field: str) -> set[type] | None:
    try:
        return survey(value, limits.max_depth, limits.max_bytes)
    except HeavyTree as heavy:
        _refuse_size(heavy.weight, limits, field)


def _refuse_first_problem(
    value: object, limits: PayloadLimits, field: str, *, weigh: bool = True
) -> None:
    """Walk the whole tree in order and refuse the first value that breaks a rule."""
    stack: list[tuple[object, _ValuePath | None, int]] = [(value, None, 1)]
    weight = 0
    while stack:
        node, place, depth = stack.pop()
        children: list[tuple[object, _ValuePath | None, int]] = []
        rule = None
        if isinstance(node, dict):
            for key in dict.keys(node):
                if not isinstance(key, str):
                    rule = f"keys must be text, not {type(key).__name__}"
                    break
                problem = text_problem(key)
                if problem is not None:
                    place, rule = _ValuePath(place, key), f"the key {problem}"
                    break
            else:
                children = [
                    (child, _ValuePath(place, key), depth + 1) for key, child in dict.items(node)
                ]
        elif isinstance(node, (list, tuple)):
            children = [
                (child, _ValuePath(place, index), depth + 1) for index, child in enumerate(node)
            ]
        else:
            rule = _scalar_problem(node, limits)
        if rule is None and depth > limits.max_depth and isinstance(node, (dict, list, tuple)):
            rule = _depth_rule(limits)
        if rule is not None:
            raise InvalidInput(place.path(field) if place else field, rule)
        weight += 1 + len(children)
        if weigh and weight > limits.max_bytes:
            _refuse_size(weight, limits, field)
        children.reverse()
        stack += children


def _problem_of(error: Exception, value: object, limits: PayloadLimits, field: str) -> InvalidInput:
    """The error for a value that could not be written: its first problem, if any."""
    try:
        _refuse_first_problem(value, limits, field)
    except InvalidInput as problem:
        return problem
    except Exception as deeper:
        error = deeper
    return InvalidInput(field, f"cannot be written as JSON ({type(error).__name__})")


def _scalar_problem(value: object, limits: PayloadLimits) -> str | None:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        return text_problem(value)
    if isinstance(value, int):
        bound = _bound(limits.max_digits)
        return None if -bound < value < bound else _digits_rule(limits)
    if isinstance(value, float):
        if not isfinite(value):
            return "NaN and Infinity are not JSON numbers"
        # Compared with an exact integer: PostgreSQL writes 1e308 as 309 digits.
        return None if abs(value) < _bound(limits.max_digits) else _digits_rule(limits)
    if isinstance(value, _BadNumber):
        return value.rule
    name = type(value).__name__
    hint = _HINTS.get(name)
    return not_json(name) + (f"; {hint}" if hint else "")


def _write_out(match: re.Match[str]) -> str:
    """5e+16 as 50000000000000000.0: without a fraction jsonb would return an integer."""
    number = match[1]
    return match[0] if number is None else format(Decimal(number), "f") + ".0"


def _from_model(value: object, field: str) -> object:
    """A pydantic model or dataclass as JSON values; other values unchanged."""
    if isinstance(value, type) or not (
        is_dataclass(value) or hasattr(type(value), "__pydantic_serializer__")
    ):
        return value
    # Imported here, because the help of commands does not need it.
    from pydantic_core import to_jsonable_python

    try:
        plain: object = to_jsonable_python(value)
    except Exception as error:
        reason = escape_text(str(error))[:_PATH_CHARS]
        raise InvalidInput(field, f"cannot be written as JSON: {reason}") from None
    return plain


def _parse_odd(text: str, limits: PayloadLimits) -> object:
    """Parse a text that may contain a number out of range, so that its place can be named."""
    bound = _bound(limits.max_digits)
    bad = _BadNumber(_digits_rule(limits))

    def integer(digits: str) -> object:
        return bad if len(digits.lstrip("-")) > limits.max_digits else int(digits)

    def real(digits: str) -> object:
        number = float(digits)
        return number if abs(number) < bound else bad

    value: object = json.loads(
        text, parse_int=integer, parse_float=real, parse_constant=_bad_constant
    )
    return value


def _refuse_size(size: int, limits: PayloadLimits, field: str) -> NoReturn:
    raise InvalidInput(field, f"is at least {size} bytes of JSON; at most {limits.max_bytes}")


def _depth_rule(limits: PayloadLimits) -> str:
    return f"is nested deeper than {limits.max_depth} levels"


def _digits_rule(limits: PayloadLimits) -> str:
    return f"numbers may have at most {limits.max_digits} digits"


@cache
def _bound(max_digits: int) -> int:
    return int(10**max_digits)


# Searched from the first digit of a number only: from each digit, a payload of long numbers would
# take seconds.
def _many_digits(max_digits: int) -> str:
    return f"(?<![0-9]{{2}})[0-9]{{{max_digits}}}"


@cache
def _odd_number(max_digits: int) -> re.Pattern[str]:
    return re.compile(f"[0-9](?:{_many_digits(max_digits)}|[eE]\\+?[0-9]{{2}})")
