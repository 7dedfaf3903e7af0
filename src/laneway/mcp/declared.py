"""Tools made from the declarations of operations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import Parameter, Signature
from typing import Annotated, Any, Optional

from pydantic import BaseModel, create_model

from laneway.domain.annotations import Doc, NullWord, find_mark, non_null, unwrap
from laneway.domain.codec import to_json
from laneway.errors import InvalidInput
from laneway.http import AsyncClient
from laneway.http.declared import call_for, listing_for
from laneway.http.pages import AsyncPages
from laneway.operations.models import output_model, output_type
from laneway.operations.operation import Invocation, Operation

AnyOperation = Operation[Any, Any]


def tool_of(
    operation: AnyOperation, client: Callable[[], AsyncClient], without: tuple[str, ...] = ()
) -> Callable[..., Awaitable[BaseModel]]:
    """The function of a tool, with a parameter for each input; settings in `without` are left out.

    Null means "not given" to an assistant, so that a setting that may be null also has a flag.
    """
    model = _result(operation)

    async def tool(**given: Any) -> BaseModel:
        asked = _asked(operation, given)
        if operation.item is not None:
            found = AsyncPages(client(), listing_for(asked))
            return model.model_validate({"items": [to_json(each) async for each in found]})
        done = to_json(await client().perform(call_for(asked)))
        return model.model_validate(done if operation.field is None else {operation.field: done})

    tool.__name__ = operation.name
    tool.__doc__ = operation.description.split("\n\n")[0]
    tool.__signature__ = Signature(  # type: ignore[attr-defined]
        [each for each in _parameters(operation) if each.name not in without],
        return_annotation=model,
    )
    return tool


def _result(operation: AnyOperation) -> type[BaseModel]:
    field = "items" if operation.item is not None else operation.field
    if field is None:
        return output_model(operation.output)
    kind = operation.output if operation.item is None else tuple.__class_getitem__(operation.item)
    shown: dict[str, Any] = {field: (output_type(kind), ...)}
    return create_model("Result", **shown)


def _parameters(operation: AnyOperation) -> list[Parameter]:
    taken: list[Parameter] = []
    for each in operation.inputs:
        for name, hint in each.settings.items():
            taken.append(_parameter(name, _may_be_left_out(hint), None))
            if (word := find_mark(hint, NullWord)) is not None:
                flag = Annotated[bool, Doc(f"Set {name} to {word.word}; not with {name}")]
                taken.append(_parameter(word.word, flag, False))
        if not each.settings:
            taken.append(_parameter(each.name, each.hint, each.default))
    return taken


def _parameter(name: str, hint: Any, default: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=hint, default=default)


def _may_be_left_out(hint: Any) -> Any:
    kind, marks = unwrap(hint)
    kept = tuple(mark for mark in marks if not isinstance(mark, NullWord))
    return Annotated[(kind if non_null(kind) else Optional[kind], *kept)]  # noqa: UP045


def _asked(operation: AnyOperation, given: dict[str, Any]) -> Invocation[Any]:
    fields = {name: value for name, value in given.items() if value is not None}
    for each in operation.inputs:
        for name, hint in each.settings.items():
            word = find_mark(hint, NullWord)
            if word is None or not fields.get(word.word):
                continue
            if name in fields:
                raise InvalidInput(word.word, f"goes without {name}")
            fields[name] = None
    return operation.given(fields)
