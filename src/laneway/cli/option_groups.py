"""Options that a command shares with others, added to its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

Command = Callable[..., None]
# Options by parameter, as annotations; without a value, a flag is False and others are None.
Options = Mapping[str, Any]

_KEYWORD: Final = inspect.Parameter.KEYWORD_ONLY


def takes(
    argument: str,
    options: Options,
    gather: Callable[[dict[str, Any]], object] = lambda given: given,
) -> Callable[[Command], Command]:
    """Give a command these options in place of one argument, which gets their gathered values."""

    def decorate(command: Command) -> Command:
        def run(**given: Any) -> None:
            gathered = gather({name: given.pop(name) for name in options})
            command(**{argument: gathered}, **given)

        own = list(inspect.signature(command, eval_str=True).parameters.values())
        place = next(n for n, each in enumerate(own) if each.name == argument)
        made = [
            inspect.Parameter(
                name,
                _KEYWORD,
                default=False if get_args(option)[0] is bool else None,
                annotation=option,
            )
            for name, option in options.items()
        ]
        after = [each.replace(kind=_KEYWORD) for each in own[place + 1 :]]
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__signature__ = inspect.Signature([*own[:place], *made, *after])  # type: ignore[attr-defined]
        run.__annotations__ = {}
        return run

    return decorate
