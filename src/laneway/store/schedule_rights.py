"""Rights that the statements of schedules need; see rights.py."""

from __future__ import annotations

from typing import Final

# The triggers of schedules write this.
_SCHEDULE_CHANGE: Final = ("select update on schedule_state",)

SCHEDULE_STATEMENTS: Final[dict[str, tuple[str, ...]]] = {
    "schedules/begin_check": ("select on schedules", "select update on schedule_state"),
    "schedules/change_schedule": ("select update on schedules", *_SCHEDULE_CHANGE),
    "schedules/create_schedule": ("select insert on schedules", "select insert on schedule_state"),
    "schedules/delete_schedule": ("select delete on schedules", "select delete on schedule_slots"),
    "schedules/find_due": (
        "select on leader", "select on schedules", "select on schedule_state",
    ),
    "schedules/find_ahead": ("select on schedules", "select on schedule_state"),
    "schedules/fire_slots": ("execute on fire",),
    "schedules/list_scopes": ("select on schedules",),
    "schedules/list_slots": (
        "select on schedule_slots", "select on outcome", "select on jobs",
    ),
    "schedules/plan_schedule": ("select on schedules", "select update on schedule_state"),
    "schedules/read_schedules": (
        "select on schedules", "select on schedule_state", "select on schedule_slots",
        "select on outcome", "select on jobs",
    ),
    "schedules/read_settings": ("select on schedules",),
    "schedules/release_checks": ("select update on schedule_state",),
    "schedules/replan_schedule": ("select on schedules", "select update on schedule_state"),
    "schedules/run_schedule": ("execute on run_schedule",),
    "schedules/stop_schedule": ("select update on schedules", *_SCHEDULE_CHANGE),
}  # fmt: skip
