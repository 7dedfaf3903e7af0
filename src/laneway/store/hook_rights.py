"""Rights that statements and functions of end hooks and webhooks need; see function_rights.py."""

from __future__ import annotations

from typing import Final

HOOK_FUNCTIONS: Final[dict[str, tuple[str, ...]]] = {
    "value_for_hook": (),
    "ended_job": (
        "select on outcome", "select on jobs", "select on flows", "execute on value_for_hook",
    ),
    "submit_hook_jobs": ("execute on store_batch", "execute on analysis_of"),
    "is_hook_type": ("select on end_hooks",),
    "submit_end_hooks": (
        "select on end_hooks", "select on outcome", "select on jobs", "select on webhooks",
        "execute on ended_job", "execute on is_hook_type", "execute on lane_of",
        "execute on submit_hook_jobs",
    ),
    "publish_end_hooks": ("select insert update delete on end_hooks", "select on workers"),
}  # fmt: skip
# Of workers.
HOOK_STATEMENTS: Final[dict[str, tuple[str, ...]]] = {
    "end_hooks/publish_hooks": ("execute on publish_end_hooks",),
}
# Of servers; workers read where a delivery goes, with its secrets. No other role may read webhooks.
WEBHOOK_STATEMENTS: Final[dict[str, tuple[str, ...]]] = {
    "end_hooks/list_hooks": ("select on end_hooks",),
    "webhooks/change_webhook": ("select update on webhooks",),
    "webhooks/create_webhook": ("select insert on webhooks", "select update on control"),
    "webhooks/delete_webhook": ("select delete on webhooks",),
    "webhooks/read_target": ("select on webhooks",),
    "webhooks/read_webhooks": ("select on webhooks",),
    "webhooks/submit_test": ("select on webhooks", "execute on submit"),
}
WEBHOOK_WORKER: Final = ("webhooks/read_target",)
