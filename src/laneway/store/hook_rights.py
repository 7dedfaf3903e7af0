"""Rights that statements and SQL functions of end hooks need; see function_rights.py."""

from __future__ import annotations

from typing import Final

HOOK_FUNCTIONS: Final[dict[str, tuple[str, ...]]] = {
    "value_for_hook": (),
    "ended_job": (
        "select on outcome", "select on jobs", "select on flows", "execute on value_for_hook",
    ),
    "submit_hook_jobs": ("execute on submit_batch", "execute on analysis_of"),
    "submit_end_hooks": (
        "select on end_hooks", "select on outcome", "select on jobs", "execute on ended_job",
        "execute on submit_hook_jobs",
    ),
    "publish_end_hooks": ("select insert update delete on end_hooks", "select on workers"),
}  # fmt: skip
# Of workers.
HOOK_STATEMENTS: Final[dict[str, tuple[str, ...]]] = {
    "end_hooks/publish_hooks": ("execute on publish_end_hooks",),
}
