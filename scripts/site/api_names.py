"""The public names of Laneway and their parameters, read from the code."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from itertools import pairwise
from types import ModuleType, NoneType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints, is_typeddict

from laneway.domain.annotations import Doc

# Modules with public names, in the order of the site. Of `laneway.control` only these are public.
MODULES: dict[str, tuple[str, ...]] = {
    "laneway": (),
    "laneway.errors": (),
    "laneway.testing": (),
    "laneway.http": (),
    "laneway.integrations.fastapi": (),
    "laneway.integrations.sentry": (),
    "laneway.control.resources": (),
    "laneway.control.bulk": ("preview", "run"),
    "laneway.control.lanes": ("pause", "resume_all"),
    "laneway.control.freeze": ("freeze", "thaw", "frozen"),
    "laneway.control.workers": ("overview", "get", "drain", "resume"),
    "laneway.control.job_types": ("listing", "publishers", "forget_publisher"),
    "laneway.control.audit": ("listing",),
}
# Objects that Laneway hands out: programs do not call their classes.
HANDED_OUT = {
    "Context",
    "SyncContext",
    "JobHandle",
    "JobType",
    "Jobs",
    "Lanes",
    "Limits",
    "Schedules",
}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function or a field of a class."""

    name: str
    type: str
    default: str
    doc: str = ""


@dataclass(frozen=True)
class Entry:
    """A public name: what it is, how it is called, and its members."""

    name: str
    kind: str
    signature: str
    doc: str
    parameters: tuple[Parameter, ...] = ()
    members: tuple[Entry, ...] = ()

    def walk(self) -> Iterator[Entry]:
        yield self
        for member in self.members:
            yield from member.walk()


def public_names(module: ModuleType) -> list[str]:
    """The names given above, else those of `__all__`, else those that the module defines."""
    if given := MODULES.get(module.__name__):
        return [*given]
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if not name.startswith("_")]
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isroutine(value))
        and value.__module__ == module.__name__
    ]


@cache
def read_module(name: str) -> list[Entry]:
    """The entries of a module's public names."""
    module = import_module(name)
    return [read_name(each, getattr(module, each)) for each in public_names(module)]


def read_name(name: str, value: Any) -> Entry:
    if inspect.isclass(value):
        return _read_class(name, value)
    if inspect.isroutine(value):
        return _call(value, name)
    # An instance, such as the clock of tests: its class says what it can do.
    kind = type(value)
    return Entry(name, "object", name, _doc(kind), (), _members(name, kind))


def _read_class(name: str, kind: type) -> Entry:
    fields = tuple(_fields(kind))
    if fields:
        return Entry(name, "class", f"class {name}", _doc(kind), fields, _members(name, kind))
    is_called = "__init__" in _defined(kind) and name not in HANDED_OUT
    made = _call(kind.__init__, name) if is_called else None  # type: ignore[misc]
    return Entry(
        name,
        "class",
        made.signature if made else f"class {name}",
        "\n\n".join(filter(None, (_doc(kind), made.doc if made else ""))),
        made.parameters if made else (),
        _members(name, kind),
    )


def _call(function: Any, name: str) -> Entry:
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.name not in ("self", "cls")]
    returns = signature.return_annotation
    is_made = function.__name__ == "__init__" or returns is inspect.Signature.empty
    text = "{}{}({}){}".format(
        "await " if inspect.iscoroutinefunction(inspect.unwrap(function)) else "",
        name,
        ", ".join(_shown(own)),
        "" if is_made else f" -> {_plain(_text(returns))}",
    )
    parameters = tuple(each for one in own for each in _parameters(one, function))
    return Entry(name, "function", _wrapped(text), _doc(function), parameters)


def _shown(parameters: list[inspect.Parameter]) -> Iterator[str]:
    """The parameters as the code writes them."""
    kinds = [each.kind for each in parameters]
    for position, each in enumerate(parameters):
        before = kinds[position - 1] if position else None
        if each.kind is each.KEYWORD_ONLY and before not in (
            each.KEYWORD_ONLY,
            each.VAR_POSITIONAL,
        ):
            yield "*"
        prefix = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(each.kind.name, "")
        is_bare = each.annotation is each.empty
        hint = "" if is_bare else f": {_plain(_split_doc(each.annotation)[0])}"
        equals = " = " if hint else "="
        default = "" if each.default is each.empty else f"{equals}{_default(each.default) or '...'}"
        yield f"{prefix}{each.name}{hint}{default}"
        if each.kind is each.POSITIONAL_ONLY and each.kind not in kinds[position + 1 :]:
            yield "/"


def _parameters(one: inspect.Parameter, function: Any) -> Iterator[Parameter]:
    hint = "" if one.annotation is inspect.Parameter.empty else _text(one.annotation)
    if options := re.fullmatch(r"Unpack\[(\w+)\]", hint):
        yield from _options(options[1], function)
        return
    prefix = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(one.kind.name, "")
    default = "" if one.default is inspect.Parameter.empty else _default(one.default)
    shown, doc = _split_doc(hint)
    yield Parameter(prefix + one.name, _plain(shown), default, doc)


def _options(name: str, function: Any) -> Iterator[Parameter]:
    """The keys of the TypedDict that describes a function's `**options`."""
    kind = _find(name, inspect.unwrap(function))
    if not is_typeddict(kind):
        raise TypeError(f"{name} is not a TypedDict")
    marked = get_type_hints(kind, include_extras=True)
    for key, hint in get_type_hints(kind).items():
        yield Parameter(key, _plain(_text(hint)), "", _split_doc(marked[key])[1])


def _find(name: str, function: Any) -> Any:
    """A TypedDict that a function's module imports, also only for type checkers."""
    module = import_module(function.__module__)
    if hasattr(module, name):
        return getattr(module, name)
    tree = ast.parse(inspect.getsource(module))
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module
            and name in {each.name for each in node.names}
        ):
            return getattr(import_module(node.module), name)
    raise LookupError(f"{module.__name__}: {name} is not imported")


def _fields(kind: type) -> Iterator[Parameter]:
    """The fields of a dataclass or of a pydantic model."""
    if dataclasses.is_dataclass(kind):
        docs = _field_docs(kind)
        for each in dataclasses.fields(kind):
            if each.name.startswith("_"):
                continue
            default = "" if each.default is dataclasses.MISSING else _default(each.default)
            if each.default_factory is not dataclasses.MISSING:
                default = f"{getattr(each.default_factory, '__name__', 'made')}()"
            hint, doc = _split_doc(each.type)
            yield Parameter(each.name, _plain(hint), default, docs.get(each.name, doc))
    elif hasattr(kind, "model_fields"):
        hints = get_type_hints(kind)
        for name, info in kind.model_fields.items():
            default = "" if info.is_required() else _default(info.default)
            yield Parameter(name, _plain(_text(hints[name])), default, info.description or "")


def _split_doc(hint: Any) -> tuple[str, str]:
    """The type of a field without its marks, and the phrase of its `Doc`."""
    text = _text(hint)
    if get_origin(hint) is Annotated:
        doc = next((mark.text for mark in get_args(hint)[1:] if isinstance(mark, Doc)), "")
        return _text(get_args(hint)[0]), doc
    if not text.startswith("Annotated["):
        return text, ""
    match ast.parse(text, mode="eval").body:
        case ast.Subscript(slice=ast.Tuple(elts=[kind, *marks])):
            pass
        case _:
            return text, ""
    for mark in marks:
        if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "Doc":
            (phrase,) = mark.args
            found = phrase.value if isinstance(phrase, ast.Constant) else ast.unparse(phrase)
            return ast.unparse(kind), str(found)
    return ast.unparse(kind), ""


def _field_docs(kind: type) -> dict[str, str]:
    """The texts below the fields of a class."""
    docs: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if each.__module__.startswith("laneway"):
            (source,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
            lines = source.body if isinstance(source, ast.ClassDef) else []
            for field, text in pairwise(lines):
                if (
                    isinstance(field, ast.AnnAssign)
                    and isinstance(field.target, ast.Name)
                    and isinstance(text, ast.Expr)
                    and isinstance(text.value, ast.Constant)
                ):
                    docs[field.target.id] = inspect.cleandoc(str(text.value.value))
    return docs


def _members(name: str, kind: type) -> tuple[Entry, ...]:
    found = []
    for member, value in sorted(_defined(kind).items()):
        if member.startswith("_"):
            continue
        path = f"{name}.{member}"
        value = value.__func__ if isinstance(value, staticmethod | classmethod) else value
        # Of a property, or of a cached one.
        function = getattr(value, "fget", None) or getattr(value, "func", None)
        if function is not None:
            returns = inspect.signature(function).return_annotation
            type_ = "" if returns is inspect.Signature.empty else f": {_plain(_text(returns))}"
            found.append(Entry(path, "property", path + type_, _doc(function)))
        elif inspect.isfunction(value):
            found.append(_call(value, path))
        elif inspect.isfunction(build := getattr(value, "build", None)):
            # A method of both HTTP clients: the function that builds its request.
            found.append(_sent(_call(build, path), is_async=kind.__name__.startswith("Async")))
    return tuple(found)


def _sent(call: Entry, *, is_async: bool) -> Entry:
    """A request that a client sends: the result is that of the response."""
    shown = re.sub(r"-> Call\[(.*)\]$", r"-> \1", call.signature)
    shown = re.sub(r"-> Listing\[", "-> AsyncPages[" if is_async else "-> Pages[", shown)
    shown = re.sub(
        r"-> EventSource$", f"-> {'AsyncIterator' if is_async else 'Iterator'}[Event]", shown
    )
    is_awaited = is_async and "-> Async" not in shown
    return replace(call, signature=f"await {shown}" if is_awaited else shown)


def _defined(kind: type) -> dict[str, Any]:
    """The attributes of a class and of those of its bases that are Laneway's."""
    found: dict[str, Any] = {}
    for each in reversed(kind.__mro__):
        if each.__module__.startswith("laneway"):
            found.update(vars(each))
    return found


def _doc(value: Any) -> str:
    own = value.__doc__ or ""
    # A dataclass without a docstring gets its signature as one.
    is_made = own.startswith(f"{getattr(value, '__name__', '')}(")
    return "" if is_made else inspect.cleandoc(own)


def _text(hint: Any) -> str:
    if get_origin(hint) is Union:
        return " | ".join("None" if each is NoneType else _text(each) for each in get_args(hint))
    return hint if isinstance(hint, str) else inspect.formatannotation(hint)


def _plain(text: str) -> str:
    """An annotation without the modules of its names."""
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z])", "", text)


def _default(value: Any) -> str:
    if inspect.isroutine(value) or inspect.isclass(value):
        return str(value.__name__)
    shown = repr(value)
    return "" if shown.startswith("<") else shown


def _wrapped(text: str) -> str:
    """A signature on several lines if it is long."""
    if len(text) <= 90:
        return text
    begin, _, rest = text.partition("(")
    depth, parts, part = 0, [], ""
    for position, letter in enumerate(rest):
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0:
            parts.append(part.strip())
            end = rest[position:]
            break
        if letter == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += letter
    return f"{begin}(\n    " + ",\n    ".join(parts) + f",\n{end}"
