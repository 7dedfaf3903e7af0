"""JSON responses written from plain values. Models describe them and are not used to write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastapi import Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from laneway.domain.json_writer import write_json

# With `omit`, responses leave out large values, and lists omit payloads, results and checkpoints.
LARGE_VALUES_HEADER: Final = "Laneway-Large-Values"


class Json(JSONResponse):
    """A JSON response that can contain stored JSON text."""

    def render(self, content: Any) -> bytes:
        return write_json(content)


def render(
    model: type[BaseModel],
    values: Any,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Json:
    """A response with the values as their model describes them."""
    return Json(model.model_validate(values).model_dump(mode="json"), status, headers)


def location(request: Request, path: str) -> str:
    """The path of a resource, including the prefix under which the API is mounted."""
    return f"{request.scope.get('root_path', '')}{path}"
