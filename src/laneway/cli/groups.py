"""Groups of commands whose --help loads no heavy module."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup


class Group(TyperGroup):
    """A group whose own options are strings or flags."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for param in self.get_params(ctx):
            _skip_conversion(param)
        return super().parse_args(ctx, args)


def _skip_conversion(param: Any) -> None:
    """Take strings unchanged: Typer's conversion would load pydantic, even for --help."""
    if "process_value" in vars(param):
        return  # Done before.
    convert = param.process_value

    def process_value(ctx: Any, value: Any) -> Any:
        if not (value is None or isinstance(value, str)):
            return convert(ctx, value)
        return value if param.callback is None else param.callback(ctx, param, value)

    param.process_value = process_value


def group(summary: str) -> typer.Typer:
    """Create a group of commands."""
    return typer.Typer(
        cls=Group, no_args_is_help=True, rich_markup_mode=None, add_completion=False, help=summary
    )
