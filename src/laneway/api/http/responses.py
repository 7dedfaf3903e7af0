"""Answers made from plain values, without a model between: the models only describe them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from math import isfinite
from typing import Any, Final

from fastapi import Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from laneway.domain.stored_json import StoredJson

# With `omit`, answers leave large values out and lists leave out payloads, results and checkpoints.
LARGE_VALUES_HEADER: Final = "Laneway-Large-Values"
_omits: ContextVar[bool] = ContextVar("omits_large_values", default=False)


@contextmanager
def large_values(wanted: str | None) -> Iterator[None]:
    """Answer large values within this block as a request's header asks for."""
    token = _omits.set(wanted == "omit")
    try:
        yield
    finally:
        _omits.reset(token)


def omits_large_values() -> bool:
    """Whether the request at hand asks for answers without large values."""
    return _omits.get()


class Json(JSONResponse):
    """JSON of what PostgreSQL holds, which has numbers that Python reads as infinite."""

    def render(self, content: Any) -> bytes:
        if isinstance(content, dict) and StoredJson in map(type, content.values()):
            return b"{%b}" % b",".join(self._member(*each) for each in content.items())
        try:
            return super().render(content)
        except ValueError:
            return super().render(_finite(content))

    def _member(self, name: str, value: Any) -> bytes:
        if isinstance(value, StoredJson) and _omits.get():
            size = len(value.text)
            value = {"left_out": f"{size} bytes of JSON: read it with GET /jobs/{{id}}"}
        text = value.text if isinstance(value, StoredJson) else self.render(value)
        return b"%b:%b" % (json.dumps(name).encode(), text)


def render(value: Any) -> bytes:
    """A value as `Json` writes it, to be a part of something larger."""
    return _JSON.render(value)


_JSON: Final = Json(None)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    if isinstance(value, float) and not isfinite(value):
        return json.dumps(value)
    return value


def told(
    model: type[BaseModel],
    values: Any,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Json:
    """Values as their model describes them."""
    return Json(model.model_validate(values).model_dump(mode="json"), status, headers)


def location(request: Request, path: str) -> str:
    """Where something is, wherever the API is mounted."""
    return f"{request.scope.get('root_path', '')}{path}"
