"""Sets of lanes: `LANEWAY_LANES`, `lanes` in `laneway.toml`, lane files and presets."""

from __future__ import annotations

import json
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Final

from laneway.domain.lane import Lane
from laneway.domain.lane_setup import check_setup, read_table
from laneway.domain.suggestion import suggest
from laneway.errors import InvalidInput

# Sets of lanes that come with Laneway, by name.
PRESETS: Final = ("knowledge-graph", "plain")
# The lanes of a new database.
SEEDED: Final = "knowledge-graph"


def read_lanes(value: object) -> tuple[Lane, ...]:
    """Reads lanes: a preset's name, TOML or JSON text, the path of a file, or parsed content."""
    try:
        if isinstance(value, str):
            value = _lane_data(value)
        return check_setup(read_table(value))
    except InvalidInput as error:
        text = error.rule if error.field == "lanes" else str(error)
        raise ValueError(text) from None


def preset(name: str) -> tuple[Lane, ...]:
    """The lanes of a preset."""
    return read_lanes(name)


def whole_setup(lanes: tuple[Lane, ...]) -> tuple[Lane, ...]:
    """The lanes if they are those of a preset, which replace the lanes of a new database."""
    return lanes if any(lanes == preset(name) for name in PRESETS) else ()


def _lane_data(text: str) -> object:
    text = text.strip()
    if not text:
        return ()
    if text in PRESETS:
        text = files("laneway.config").joinpath("presets", f"{text}.toml").read_text("utf-8")
    elif not text.startswith(("[", "{")) and "\n" not in text and "=" not in text:
        try:
            text = Path(text).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            near = suggest(text, PRESETS)
            raise ValueError(f"cannot read the file {text[:200]} ({reason}){near}") from None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is neither JSON nor TOML ({str(error)[:100]})") from None


def is_seeded(row: Lane) -> bool:
    """Whether a lane is as a new database has it."""
    return any(one.name == row.name and not one.differences(row) for one in preset(SEEDED))


def is_set_by_operator(row: Lane) -> bool:
    """Whether a lane is neither as a new database has it nor last changed by a worker's code."""
    return not is_seeded(row) and not (row.updated_by or "").startswith("worker ")
