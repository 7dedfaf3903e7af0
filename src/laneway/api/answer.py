"""Answers made from plain values, without a model between: the models only describe them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any, Final

from fastapi import Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel


class Json(JSONResponse):
    """JSON of what PostgreSQL holds, which has numbers that Python reads as infinite."""

    def render(self, content: Any) -> bytes:
        try:
            return super().render(content)
        except ValueError:
            return super().render(_finite(content))


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
