"""Rights that each SQL function needs, because functions run with the rights of their caller.

`execute on f` includes what f needs. A function with an empty tuple touches no table, or is a
`security definer`: it runs with its owner's rights and its callers need no others. Submit, cancel,
decide and finish are such functions, so that callers cannot write what they check.
"""

from __future__ import annotations

from typing import Final

from laneway.store.edge_rights import EDGE_FUNCTIONS
from laneway.store.hook_rights import HOOK_FUNCTIONS
from laneway.store.older_names import OLDER_NAMES
from laneway.store.turn_rights import TURN_FUNCTIONS
from laneway.store.wait_rights import WAIT_FUNCTIONS

LANE_CHANGE: Final = ("select update on worker_lanes", "select update on control")

FUNCTIONS: Final[dict[str, tuple[str, ...]]] = {
    **{old: (f"execute on {new}",) for old, new in OLDER_NAMES.items()},
    **EDGE_FUNCTIONS,
    **HOOK_FUNCTIONS,
    **TURN_FUNCTIONS,
    **WAIT_FUNCTIONS,
    "lane_of": ("select on worker_lanes",),
    "jobs_by_id": ("select on jobs", "select on jobs_as_text", "execute on lane_of"),
    "assign_types": (*LANE_CHANGE, "insert on worker_lanes"),
    "note_wait": (),
    "load_lanes": (*LANE_CHANGE, "insert delete on worker_lanes"),
    "analysis_of": (),
    "strictness": (),
    "save_publications": ("select insert update on type_publishers",),
    "is_current_publisher": (),
    "publication_conflicts": ("select on type_publishers", "execute on is_current_publisher"),
    "forget_publisher": ("select delete on type_publishers", "select delete on end_hooks"),
    "seal": (),
    "save_decision": ("select on approvals", "insert on decisions"),
    "make_claimable": (
        "select on jobs", "select on approvals", "insert on delayed", "insert on ready",
    ),
    "lacking_approval": ("select on job_types", "select on approvals"),
    "return_to_approval": (
        "select on job_types", "select insert update on approvals", "insert on ready",
        "execute on analysis_of", "execute on apply_approval_policy",
        "execute on promote_next_for_key", "execute on wake", "execute on emit",
    ),
    "request_approval": ("select on jobs", "select on job_types", "insert on awaiting"),
    "apply_approval_policy": (
        "select on jobs", "select on job_types", "select update on approvals",
        "execute on seal", "execute on save_decision", "execute on make_claimable",
        "execute on request_approval",
    ),
    "requeue_retried": (
        "select on jobs", "select on job_types", "select update on approvals", "insert on ready",
        "execute on seal", "execute on analysis_of", "execute on apply_approval_policy",
    ),
    "start_approval": (
        "select on jobs", "select on job_types", "insert on approvals", "insert on ready",
        "execute on analysis_of", "execute on request_approval",
    ),
    "save_analysis": (
        "select insert update on approvals", "select delete on progress", "select delete on steps",
        "select on attempts",
    ),
    "close_awaiting": (
        "select delete on awaiting", "select on jobs", "select insert update on approvals",
        "execute on seal", "execute on save_decision", "execute on make_claimable",
        "execute on end_waiting", "execute on emit",
    ),
    "schedule_writers": ("select on control_history",),
    "save_schedule_writers": (
        "insert on schedule_jobs", "select on jobs", "execute on schedule_writers",
    ),
    "is_own_job": (
        "select on schedules", "select on schedule_jobs", "execute on schedule_writers",
    ),
    "expire_approvals": ("select update on awaiting", "execute on close_awaiting"),
    **dict.fromkeys(("submit", "submit_batch", "store_batch"), ()),
    **dict.fromkeys(("payload_problem", "submit_problem"), ()),
    **dict.fromkeys(("decide", "unique_problem", "unique_key_of"), ()),
    "submit_requests": (
        "execute on submit", "insert on audit", "execute on jobs_by_id", "execute on charge_quota",
        "execute on check_quota", "select on job_types",
    ),
    # These run with their owner's rights, and so do the functions of quotas.sql that they call.
    "charge_quota": (),
    "send_counted_event": (),
    "is_event_account": (),
    "check_max_events": ("select on queued_by", "select on sent_events"),
    "check_quota": (),
    "recount_queued": (),
    "queued_of": ("select on queue_usage",),
    "count_queued": ("select insert update on queue_usage",),
    "check_max_queued": (),
    "check_max_types": (),
    "correct_queued": ("select on queued_by", "execute on queued_of", "execute on count_queued"),
    "counted_principals": (
        "select on queue_usage", "select on queued_by", "select on unpublished_types",
    ),
    "sweep_all_queued": (
        "execute on counted_principals", "execute on sweep_queued",
        "select delete on unpublished_types",
    ),
    "sweep_queued": (),
    "remove_waiting": (
        "select delete on ready", "select delete on delayed", "select delete on key_waiters",
        "select delete on awaiting", "select delete on waiting", "select on jobs",
        "execute on promote_next_for_key",
    ),
    "end_waiting": (
        "select on jobs", "insert on outcome", "select delete on job_keys",
        "execute on emit", "execute on note_ends", "execute on wake",
    ),
    **dict.fromkeys(("cancel", "retry", "run_now"), ()),
    "reprioritize": (
        "select update on ready", "select update on delayed", "select update on key_waiters",
        "select update on awaiting", "select update on waiting", "select update on lease",
        "select on outcome", "select on jobs", "select update on key_holders",
        "execute on promote_next_for_key", "execute on emit",
    ),
    "count_slots": (
        "select insert update on slot_counts", "select insert update on slot_holders",
    ),
    "count_limits": (
        "select insert update on limit_counts", "select insert update on limit_holders",
        "execute on host_of",
    ),
    "host_of": ("select on workers", "select on limit_holds"),
    "site_of": ("execute on host_of",),
    "slice_width": (),
    "slice_of": ("execute on slice_width",),
    "horizon_of": ("execute on slice_width",),
    "limit_capacity": (
        "select on limits", "select on limits_held", "select on limit_starts",
        "execute on host_of", "execute on site_of", "execute on horizon_of",
    ),
    "take_limits": (
        "execute on count_limits", "select on limits",
        "select insert update delete on limit_starts", "execute on site_of",
        "execute on slice_of", "execute on horizon_of",
    ),
    "free_limits": (
        "execute on count_limits", "execute on waiters_of", "execute on wake_next_waiters",
    ),
    "wake_workers": (),
    "freed_types": ("select on job_types", "select on limits", "select on limits_held"),
    "wake": (),
    "take_keys": (
        "select insert update delete on key_holders", "select insert update delete on key_waiters",
        "select insert update on ready", "select on jobs", "execute on wake",
    ),
    "promote_key_waiters": ("select update delete on key_waiters", "insert on ready"),
    "free_keys": ("select update delete on key_holders", "execute on promote_key_waiters"),
    "promote_next_for_key": (
        "select on key_holders", "execute on promote_key_waiters", "execute on wake",
    ),
    "park": (
        "select update delete on ready", "select on jobs", "select update on key_holders",
        "insert on key_waiters",
    ),
    "wrong_counters": (
        "select on lease", "select on self_finished", "select on slots_held",
        "select on limits_held", "select on limit_holds",
    ),
    "recount": (
        "execute on wrong_counters", "execute on recount_queued", "select on limit_holds",
        "select on lease", "select on self_finished",
        "select insert on slot_holders", "select update on slot_counts", "execute on count_slots",
        "select insert on limit_holders", "select update on limit_counts",
        "execute on count_limits",
    ),
    "lost_jobs": (
        "select on jobs", "select on outcome", "select on lease", "select on ready",
        "select on delayed", "select on key_waiters", "select on awaiting", "select on waiting",
    ),
    "look_for_lost": (
        "select on jobs", "select on outcome", "select on lease", "select on ready",
        "select on delayed", "select on key_waiters", "select on awaiting", "select on waiting",
    ),
    "sample_lost": ("select on jobs", "execute on look_for_lost"),
    "end_lost": (
        "execute on lost_jobs", "execute on look_for_lost", "execute on emit",
        "select on jobs", "insert on outcome",
        "select on attempts", "select on progress", "select delete on job_keys",
        "execute on note_ends", "execute on wake",
    ),
    "sweep_keys": (
        "select on key_waiters", "select update on key_holders", "select on lease",
        "select on self_finished", "execute on free_keys", "execute on promote_key_waiters",
        "execute on wake",
    ),
    "claim": (
        "select on control", "select update on worker_lanes", "select on slots_held",
        "execute on count_slots",
        "select update delete on ready", "select on jobs", "select on progress", "insert on lease",
        "select on job_types", "select update on limits", "select on approvals",
        "execute on limit_capacity", "execute on seal", "execute on take_limits",
        "execute on take_keys", "execute on lacking_approval", "execute on return_to_approval",
        "execute on waiters_of", "execute on turn_capacity", "execute on update_turns",
        "execute on leave_turns",
        "select on watches", "execute on emit",
    ),
    "origins": ("select on jobs",),
    "retry_delay": ("select on job_types",),
    "status_of": ("select on jobs_view",),
    "add_resources": (),
    "release_resources": (
        "execute on count_slots", "execute on free_keys", "execute on free_limits",
    ),
    "pop_self_finished": ("select update delete on self_finished",),
    "hold_limits": (),
    "limit_holders": (),
    "renew_holds": (),
    "drop_holds": (),
    "sweep_holds": (),
    "release_self_finished": (
        "execute on sweep_holds",
        "select on self_finished", "execute on pop_self_finished", "execute on release_resources",
        "execute on freed_types", "execute on wake",
    ),
    "complete_plain": ("select update delete on lease", "insert on outcome"),
    "settle": (
        "select delete on lease", "select insert on outcome", "select insert on attempts",
        "insert on ready", "insert on delayed", "select delete on job_keys", "select on jobs",
        "select on handler_waits", "execute on retry_delay", "execute on pop_self_finished",
        "execute on add_resources",
        "execute on release_resources", "execute on save_analysis", "execute on complete_plain",
        "execute on apply_approval_policy", "execute on status_of", "execute on freed_types",
        "execute on uncharged_pause", "execute on delete_uncharged_attempts", "execute on suspend",
        "select on arrivals", "execute on follow_ends",
        "select on watches", "execute on emit",
    ),
    "uncharged_pause": (),
    "delete_uncharged_attempts": (),
    "heartbeat": ("select update on lease",),
    "report": (
        "select update on lease", "select insert update on progress", "insert on logs",
        "select on watches", "execute on emit",
    ),
    "peek": (
        "select update delete on delayed", "select insert on ready", "select on control",
        "select on arrivals", "execute on advance", "select on waiting", "select on event_checks",
        "execute on check_events", "execute on wake_sleepers",
    ),
    "measure": (
        "select on worker_lanes", "select on slots_held", "select on ready", "execute on lane_of",
    ),
    "measure_lane": ("select on ready", "execute on lane_of"),
    "queue_position": (
        "select on jobs", "select on ready", "select on key_holders", "select on key_waiters",
        "select on job_types", "select on limits", "select on workers", "select on approvals",
        "execute on lane_of", "execute on limit_capacity", "execute on next_in_turn",
    ),
    "recent_pace": ("select on outcome",),
    "take_leadership": ("select insert update on leader",),
    "is_leader": ("select on leader",),
    "first_seq_since": ("select on jobs",),
    "ended_seqs": ("select on outcome",),
    "search_jobs": (
        "select on jobs", "select on jobs_view", "select on outcome", "select on lease",
        "select on ready", "select on delayed", "select on key_waiters", "select on awaiting",
        "select on waiting", "select on worker_lanes", "select on workers", "select on approvals",
        "select on flows", "select on links",
        "execute on first_seq_since", "execute on ended_seqs", "execute on lane_of",
        "execute on analysis_of", "execute on mentions", "execute on costs_at_most",
        "execute on is_within",
    ),
    "matching": ("execute on search_jobs",),
    "finished_steps": ("select on jobs", "select on steps"),
    "find_ids": ("select on jobs", "select on jobs_view", "execute on is_within"),
    "count_states": (
        "select on jobs", "select on outcome", "select on lease", "select on ready",
        "select on delayed", "select on key_waiters", "select on awaiting", "select on waiting",
        "execute on lane_of", "execute on analysis_of", "execute on is_within",
    ),
    **dict.fromkeys(("mentions", "is_within"), ()),
    "costs_at_most": ("select on approvals",),
    "remove_jobs": (
        "select delete on outcome", "select delete on attempts", "select delete on progress",
        "select delete on logs", "select delete on steps", "select delete on approvals",
        "select delete on decisions", "select delete on deadlines", "select delete on jobs",
        "select delete on schedule_jobs", "select update delete on unique_periods",
        "update on outcome", "select on links", "select on open_edges", "select on kept_results",
        "execute on is_needed", "execute on is_flow_kept", "execute on remove_links",
        "select delete on handler_waits",
    ),
    # Definer: its callers change jobs but have no rights on events and watches.
    "emit": (),
    "emit_removal": (),
    "log_changes": (
        "select update on watches", "select insert on events", "select on attempts",
        "select on progress", "select on jobs", "execute on current_state", "execute on lane_of",
    ),
    "current_state": ("select on jobs_view", "execute on lane_of"),
    "log_current_state": ("select insert on events", "execute on current_state"),
    "open_watches": (
        "select insert update on watches", "usage on events_id_seq", "select insert on events",
        "execute on log_current_state",
    ),
    "reconcile": (
        "select update on watches", "insert on events", "execute on log_current_state",
    ),
    "log_snapshot": ("select on events", "select on event_log"),
    "log_identity": (),
    "events_between": ("select on events", "execute on log_snapshot"),
    "prune_events": (),
    "delete_foreign_events": (
        "select delete on events", "select update on event_log", "select update on watches",
    ),
    # These two run with their owner's rights: workers delete only what the policy expires.
    "delete_expired": (),
    "prune_records": (),
    "expire_overaged": (
        "execute on is_leader", "select update delete on deadlines", "select on jobs",
        "select on job_types", "select update delete on ready", "select update delete on delayed",
        "select update delete on key_waiters", "select update delete on awaiting",
        "select delete on job_keys", "select insert on outcome", "execute on promote_next_for_key",
        "select update on lease", "execute on settle", "select update delete on waiting",
        "execute on note_ends", "execute on emit",
    ),
    "overdue_leases": (
        "select on lease", "select on workers", "select on job_types", "select on worker_lanes",
    ),
    "run_watchdog": (
        "execute on take_leadership", "execute on overdue_leases", "select update on lease",
        "execute on settle", "select on deadlines", "select on awaiting", "select on self_finished",
        "select on limit_holds", "execute on record_shared_loss", "select on jobs",
        "select on workers", "select on outcome", "select on arrivals", "select on flow_tallies",
    ),
    "losses_of": ("select on suspects",),
    "record_shared_loss": ("select insert update on suspects",),
    "fail_worker": (
        "select update on lease", "execute on settle", "select update on workers",
        "execute on record_shared_loss", "execute on wake",
    ),
    "is_type_in_use": (
        "select on workers", "select on ready", "select on lease", "select on key_waiters",
        "select on awaiting", "select on delayed", "select on waiting", "execute on analysis_of",
    ),
    "deletion_blocker": (
        "select on lease", "select on worker_lanes", "select on job_types", "select on limits_held",
        "execute on is_type_in_use",
    ),
    "roll_back": (
        "select on control_history", "select insert update delete on worker_lanes",
        "select insert update delete on limits", "select insert update delete on schedules",
        "select insert update on schedule_state", "select update on control",
        "execute on deletion_blocker",
    ),
    "delete_limit": (
        "select delete on limits", "select update on control", "execute on deletion_blocker",
    ),
    "freeze": (*LANE_CHANGE, "select insert update on frozen_lanes"),
    "thaw": (*LANE_CHANGE, "select delete on frozen_lanes"),
    "save_step": (
        "select update on lease", "select insert on steps", "select on handler_waits",
    ),
    "guard": (),
    "finish_in_transaction": (),
    "lock_limits": ("select update on limits",),
    "limit_shortage": ("execute on limit_capacity", "execute on turn_capacity"),
    "acquire": (
        "select update on limits", "select update on lease", "select on job_types",
        "execute on lock_limits", "execute on limit_shortage", "execute on take_limits",
        "execute on update_turns",
    ),
    "release_limits": (
        "select update on lease", "execute on free_limits", "select delete on call_holds",
    ),
    "acquire_for_remote": ("execute on acquire", "select insert on call_holds"),
    "end_call_holds": (
        "select update on lease", "select delete on call_holds", "select on jobs",
        "execute on release_limits", "execute on freed_types", "execute on wake",
    ),
    "take_slot": (
        "select insert update on schedule_slots", "execute on submit",
        "execute on save_schedule_writers",
    ),
    # With its owner's rights: it checks that the caller is leader or holds the check.
    "fire": (),
    "run_schedule": (
        "select update on schedules", "select update on schedule_state",
        "select on schedule_slots", "execute on take_slot",
    ),
}  # fmt: skip
