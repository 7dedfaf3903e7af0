"""Lanes to create if the database lacks them: `LANEWAY_LANES`, or `lanes` in the file."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from laneway.domain.lane import Lane
from laneway.errors import InvalidInput


def read_lanes(value: object) -> object:
    """Reads lanes from TOML or JSON text, a path to such a file, or parsed content."""
    try:
        if isinstance(value, str):
            value = _lane_data(value)
        lanes = tuple(_each_lane(value))
    except InvalidInput as error:
        raise ValueError(str(error)) from None
    owner: dict[str, str] = {}
    for i, lane in enumerate(lanes):
        if any(lane.name == other.name for other in lanes[:i]):
            raise ValueError(f"names the lane {lane.name} twice")
        for job_type in lane.job_types:
            if job_type in owner:
                raise ValueError(
                    f"puts the job type {job_type} into two lanes: {owner[job_type]}, {lane.name}"
                )
            owner[job_type] = lane.name
    return lanes


def _lane_data(text: str) -> object:
    text = text.strip()
    if not text:
        return ()
    if not text.startswith(("[", "{")) and "\n" not in text and "=" not in text:
        try:
            text = Path(text).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise ValueError(f"cannot read the file {text[:200]} ({reason})") from None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is neither JSON nor TOML ({str(error)[:100]})") from None


def _each_lane(data: object) -> Iterator[Lane]:
    if isinstance(data, Mapping) and set(data) == {"lanes"}:
        data = data["lanes"]
    if isinstance(data, Mapping):
        for name, settings in data.items():
            if not isinstance(settings, Mapping):
                raise InvalidInput(str(name), "must be a table of lane settings")
            yield _lane({"name": name, **settings})
    elif isinstance(data, (list, tuple)):
        for settings in data:
            yield settings if isinstance(settings, Lane) else _lane(settings)
    else:
        raise InvalidInput("lanes", "must be a list of lanes, or a table of them by name")


def _lane(settings: object) -> Lane:
    if not isinstance(settings, Mapping):
        raise InvalidInput("lanes", "must hold a table of settings for each lane")
    # TOML has no null.
    if settings.get("max_slots") == "unbounded":
        settings = {**settings, "max_slots": None}
    try:
        return Lane.of(settings)
    except InvalidInput as error:
        name = settings.get("name")
        field = error.field if name is None else f"lane {name}, {error.field}"
        raise InvalidInput(field, error.rule) from None
