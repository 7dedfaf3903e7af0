"""Groups of commands that show their help without loading what only running them needs."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup


class Group(TyperGroup):
    """A group whose own options are text or flags."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for param in self.get_params(ctx):
            _spare(param)
        return super().parse_args(ctx, args)


def _spare(param: Any) -> None:
    """Takes text as it is: asking Typer to convert it would load pydantic, even for --help."""
    if "process_value" in vars(param):
        return  # spared already
    convert = param.process_value

    def process_value(ctx: Any, value: Any) -> Any:
        if not (value is None or isinstance(value, str)):
            return convert(ctx, value)
        return value if param.callback is None else param.callback(ctx, param, value)

    param.process_value = process_value


def group(summary: str) -> typer.Typer:
    """A group named after its noun."""
    return typer.Typer(cls=Group, no_args_is_help=True, rich_markup_mode=None, help=summary)
