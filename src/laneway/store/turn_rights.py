"""Rights that the SQL functions of turns at limits need; see function_rights.py."""

from __future__ import annotations

from typing import Final

TURN_FUNCTIONS: Final[dict[str, tuple[str, ...]]] = {
    "turn_capacity": (
        "select on limits", "execute on waiters_of", "execute on site_of",
        "execute on turn_weight", "execute on can_take_turn",
    ),
    "next_in_turn": ("execute on waiters_of", "execute on can_take_turn"),
    "waiters_of": ("select on turns_held",),
    "save_turn": (
        "execute on waiters_of", "execute on delete_past_turns",
        "select insert delete on limit_waiters", "select update on limit_turns",
    ),
    "delete_past_turns": (
        "select on turns_held", "select update delete on limit_waiters",
        "select update on limit_turns",
    ),
    "can_take_turn": ("select on worker_lanes", "select on slots_held"),
    "turn_weight": ("select on limits", "select on worker_lanes"),
    "update_turns": (
        "select on turns_held", "select update on limit_turns", "select on limits",
        "execute on save_turn", "execute on delete_past_turns", "execute on waiters_of",
        "execute on site_of", "execute on turn_weight", "execute on wake_workers",
        "execute on wake_next_waiters", "execute on can_take_turn",
    ),
    "leave_turns": (
        "select on limit_waiters", "select on turns_held", "select update on limit_turns",
        "execute on wake_next_waiters",
    ),
    "wake_next_waiters": (
        "execute on waiters_of", "select on limits", "execute on site_of",
        "execute on wake_workers",
    ),
}  # fmt: skip
