"""Rights of the statements and functions of durable waits and events; see rights.py."""

from __future__ import annotations

from typing import Final

# All run with their owner's rights: a worker writes waits and events only through them.
WAIT_FUNCTIONS: Final[dict[str, tuple[str, ...]]] = dict.fromkeys(
    (
        "add_sub_job_edges", "add_wait", "begin_wait", "check_events", "delete_expired_events",
        "deliver_to", "event_waiters", "lock_for_wait", "send_event",
        "sub_job_results", "submit_sub_jobs", "suspend", "take_event", "waits_of", "wake_sleepers",
    ),
    (),
)  # fmt: skip

WAIT_STATEMENTS: Final[dict[str, tuple[str, ...]]] = {
    "handler_waits/begin_wait": ("execute on begin_wait",),
    "handler_waits/read_results": ("execute on results_of",),
    "handler_waits/read_sub_jobs": ("execute on sub_job_results",),
    "handler_waits/read_waits": ("execute on waits_of",),
    "handler_waits/submit_sub_jobs": ("execute on submit_sub_jobs",),
    "sent_events/send_event": ("execute on send_event",),
}
EVENT_SENDER: Final = ("sent_events/send_event",)
WAITING_WORKER: Final = tuple(name for name in WAIT_STATEMENTS if name not in EVENT_SENDER)
