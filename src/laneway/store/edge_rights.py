"""Rights that statements and SQL functions of edges and flows need; see function_rights.py."""

from __future__ import annotations

from typing import Final

EDGE_FUNCTIONS: Final[dict[str, tuple[str, ...]]] = {
    # These run with their owner's rights: workers and clients may not write edges and flows.
    **dict.fromkeys(("note_ends", "advance", "fold_tallies", "create_flow", "list_flows"), ()),
    **dict.fromkeys(("flow_states", "results_of", "cancel_flow", "remove_links"), ()),
    **dict.fromkeys(("stuck_waits", "mend_waits", "lock_retried_parents"), ()),
    "end_unstarted": ("select on jobs", "select on outcome", "execute on end_waiting"),
    "cancel_owned": ("select on links", "insert on arrivals", "execute on wake"),
    "is_needed": (
        "select on open_edges", "select on kept_results", "select on links", "select on outcome",
        "select on jobs",
    ),
    "is_flow_kept": ("select on links", "execute on flow_sums"),
    "lock_parents": (
        "select update on lease", "select update on ready", "select update on delayed",
        "select update on key_waiters", "select update on awaiting", "select update on waiting",
        "select update on outcome", "execute on look_for_lost",
    ),
    "link_jobs": (
        "select on jobs", "select on outcome", "select on flows", "insert on links",
        "insert on open_edges", "insert on countdowns", "insert on waiting",
        "insert on kept_results", "execute on lock_parents", "execute on count_in_flow",
    ),
    "count_in_flow": (
        "select on flows", "select insert on flow_tallies", "execute on merge_tallies",
    ),
    "merge_tallies": ("select insert update delete on flow_tallies",),
    "remove_empty_flows": ("select update delete on flows", "select on links"),
    "remove_unused_flows": ("select on flows", "select on links", "execute on remove_empty_flows"),
    "is_past_wait": ("select on handler_waits", "select on links", "select on outcome"),
    "reopen_sub_jobs": (
        "select on links", "select update on outcome", "execute on is_locked",
        "execute on lock_parents", "execute on retry",
    ),
    "retry_sub_jobs": (
        "select update on waiting", "select insert on open_edges", "select update on countdowns",
        "execute on reopen_sub_jobs", "execute on count_down",
    ),
    "flow_to_join": ("select update on flows",),
    "release_waiting": (
        "select update delete on waiting", "select on job_types", "select on approvals",
        "select on jobs", "insert on delayed", "insert on ready", "execute on requeue_retried",
        "select on watches", "execute on emit",
    ),
    "follow_ends": ("select on end_hooks", "select on open_edges", "execute on note_ends"),
    "count_down": (
        "select update delete on countdowns", "select on waiting", "insert on arrivals",
        "execute on release_waiting",
    ),
    "follow_edges": (
        "select update on outcome", "select update delete on open_edges",
        "select update on waiting", "execute on count_down", "execute on end_children",
    ),
    "end_children": (
        "select delete on waiting", "select on jobs", "insert on outcome",
        "select delete on job_keys", "execute on emit", "execute on note_ends",
    ),
    "is_locked": (
        "select update on lease", "select update on ready", "select update on delayed",
        "select update on key_waiters", "select update on awaiting", "select update on waiting",
    ),
    "cancel_sub_jobs": (
        "select on links", "select on jobs", "select on lease", "select update on outcome",
        "execute on is_locked", "execute on cancel",
    ),
    "flow_in_reach": ("select on flows",),
    "flow_sums": ("select on flows", "execute on flow_totals"),
    "flow_totals": ("select on flow_tallies",),
    "unfollowed_ends": (
        "select on open_edges", "select on outcome", "select on arrivals", "select on waiting",
    ),
    "measure_waiting": ("select on waiting",),
    "count_open_flows": ("select on flows",),
    "fault_of_edges": (
        "select on open_edges", "select on arrivals", "select on countdowns",
        "execute on unfollowed_ends",
    ),
    "fault_of_event": (
        "select on event_checks", "select on sent_events", "select on handler_waits",
    ),
    "mend_edges": (
        "select update insert delete on countdowns", "select insert on open_edges",
        "select insert on arrivals", "select on waiting", "select on links", "select on jobs",
        "select on handler_waits", "select on outcome", "execute on unfollowed_ends",
        "execute on release_waiting",
    ),
    "retry_flow": (
        "select on links", "select update on outcome", "execute on flow_in_reach",
        "execute on retry", "execute on is_left_alone",
    ),
    "is_left_alone": (
        "select on open_edges", "select on outcome", "select on jobs",
        "execute on is_remembered",
    ),
    "started_by_end": ("select on links", "select on waiting", "select on open_edges"),
    "is_remembered": (
        "select on links", "select on outcome", "select on jobs", "select on waiting",
    ),
}  # fmt: skip
# Of workers.
EDGE_STATEMENTS: Final[dict[str, tuple[str, ...]]] = {
    "edges/advance": ("execute on advance",),
    "edges/fold_tallies": ("execute on is_leader", "execute on fold_tallies"),
    "edges/mend_waits": ("execute on is_leader", "execute on mend_waits"),
}
