"""Rights of the statements and functions of durable waits and events; see rights.py."""

from __future__ import annotations

from typing import Final

WAIT_FUNCTIONS: Final[dict[str, tuple[str, ...]]] = {
    # These run with their owner's rights: a worker writes waits and events only through them.
    **dict.fromkeys(("begin_wait", "submit_sub_jobs", "sub_job_results", "stored_waits"), ()),
    **dict.fromkeys(("suspend", "wake_sleepers", "check_events"), ()),
    **dict.fromkeys(("send_event", "delete_expired_events"), ()),
    "send_events": ("execute on send_event",),
    "lock_for_wait": ("select update on lease",),
    "add_wait": ("select on jobs", "select on steps", "select insert on handler_waits"),
    "add_sub_job_edges": (
        "select on links", "select insert on open_edges", "select insert update on countdowns",
        "execute on lock_parents",
    ),
    "asked_waits": ("select on jobs", "select on handler_waits", "select on sent_events"),
    "take_event": ("select on sent_events", "select update on handler_waits"),
    "event_waiters": ("select on sent_events", "select on handler_waits", "select on waiting"),
    "deliver_to": (
        "select update on waiting", "select on handler_waits", "insert on event_checks",
        "execute on take_event", "execute on release_waiting",
    ),
}  # fmt: skip

WAIT_STATEMENTS: Final[dict[str, tuple[str, ...]]] = {
    "handler_waits/begin_wait": ("execute on begin_wait",),
    "handler_waits/list_waits": ("execute on asked_waits",),
    "handler_waits/read_results": ("execute on results_of",),
    "handler_waits/read_sub_jobs": ("execute on sub_job_results",),
    "handler_waits/read_waits": ("execute on stored_waits",),
    "handler_waits/submit_sub_jobs": ("execute on submit_sub_jobs",),
    "health/find_held": (
        "select on waiting", "select on open_edges", "select on outcome", "select on jobs",
    ),
    "sent_events/send_event": ("execute on send_event",),
    "sent_events/send_counted": ("execute on send_counted_event",),
    "sent_events/send_events": ("execute on send_events",),
}  # fmt: skip
EVENT_SENDER: Final = ("sent_events/send_event", "sent_events/send_events")
COUNTED_SENDER: Final = ("sent_events/send_counted",)
_READERS: Final = ("handler_waits/list_waits", "health/find_held")
WAITING_WORKER: Final = tuple(
    name for name in WAIT_STATEMENTS if name not in (*EVENT_SENDER, *COUNTED_SENDER, *_READERS)
)
