"""Rights that each SQL function needs, because functions run with the rights of their caller.

`execute on f` includes what f needs. A function with an empty tuple touches no table, or is a
`security definer`: it runs with its owner's rights and its callers need no others. Submit, cancel,
decide and finish are such functions, so that callers cannot write what they check.
"""

from __future__ import annotations

from typing import Final

LANE_CHANGE: Final = ("select update on worker_lanes", "select update on control")
# The triggers of schedules write this.
SCHEDULE_CHANGE: Final = ("select update on schedule_state",)

FUNCTIONS: Final[dict[str, tuple[str, ...]]] = {
    "lane_of": ("select on worker_lanes",),
    "jobs_by_id": ("select on jobs", "select on jobs_as_text", "execute on lane_of"),
    "adopt_type": LANE_CHANGE,
    "adopt_types": (*LANE_CHANGE, "insert on worker_lanes"),
    "analysis_of": (),
    "strictness": (),
    "merge_publications": ("select insert update on type_publishers",),
    "binds": (),
    "publication_conflicts": ("select on type_publishers", "execute on binds"),
    "forget_publisher": ("select delete on type_publishers",),
    "seal": (),
    "keep_decision": ("select on approvals", "insert on decisions"),
    "let_through": (
        "select on jobs", "select on approvals", "insert on delayed", "insert on ready",
    ),
    "unapproved": ("select on job_types", "select on approvals"),
    "send_back": (
        "select on job_types", "select insert update on approvals", "insert on ready",
        "execute on analysis_of",
        "execute on admit", "execute on step_in", "execute on wake", "execute on emit",
    ),
    "ask": ("select on jobs", "select on job_types", "insert on awaiting"),
    "admit": (
        "select on jobs", "select on job_types", "select update on approvals",
        "execute on seal", "execute on keep_decision", "execute on let_through", "execute on ask",
    ),
    "readmit": (
        "select on jobs", "select on job_types", "select update on approvals", "insert on ready",
        "execute on seal", "execute on analysis_of", "execute on admit",
    ),
    "place": (
        "select on jobs", "select on job_types", "insert on approvals", "insert on ready",
        "execute on analysis_of", "execute on ask",
    ),
    "note_analysis": (
        "select insert update on approvals", "select delete on progress", "select delete on steps",
        "select on attempts",
    ),
    "close_awaiting": (
        "select delete on awaiting", "select on jobs", "select insert update on approvals",
        "execute on seal", "execute on keep_decision", "execute on let_through",
        "execute on end_waiting",
        "execute on emit",
    ),
    "schedule_writers": ("select on control_history",),
    "keep_writers": (
        "insert on schedule_jobs", "select on jobs", "execute on schedule_writers",
    ),
    "is_own": (
        "select on schedules", "select on schedule_jobs", "execute on schedule_writers",
    ),
    "decide": (),
    "expire_approvals": ("select update on awaiting", "execute on close_awaiting"),
    "submit": (),
    "submit_batch": (),
    "payload_problem": (),
    "submit_problem": (),
    "submit_requests": (
        "execute on submit", "insert on audit", "execute on jobs_by_id", "execute on charge",
        "execute on check_queue",
    ),
    # These run with their owner's rights, and so do the functions of quotas.sql that they call.
    "charge": (),
    "check_queue": (),
    "recount_queued": (),
    "queued_of": ("select on queue_usage",),
    "count_queued": ("select insert update on queue_usage",),
    "refuse_queued": (),
    "refuse_types": (),
    "mend_queued": ("select on queued_by", "execute on queued_of", "execute on count_queued"),
    "counted_principals": (
        "select on queue_usage", "select on queued_by", "select on unpublished_types",
    ),
    "sweep_all_queued": (
        "execute on counted_principals", "execute on sweep_queued",
        "select delete on unpublished_types",
    ),
    "sweep_queued": (),
    "take_waiting": (
        "select delete on ready", "select delete on delayed", "select delete on key_waiters",
        "select delete on awaiting", "select on jobs", "execute on step_in",
    ),
    "end_waiting": (
        "select on jobs", "insert on outcome", "select delete on job_keys",
        "execute on emit",
    ),
    "cancel": (),
    "reprioritize": (
        "select update on ready", "select update on delayed", "select update on key_waiters",
        "select update on awaiting", "select update on lease", "select on outcome",
        "select on jobs", "select update on key_holders", "execute on step_in",
        "execute on emit",
    ),
    "retry": (
        "select update delete on outcome", "select on jobs_view", "select on jobs",
        "insert on job_keys", "insert on attempts", "select on job_types",
        "select insert update on deadlines", "execute on readmit",
        "execute on emit",
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
    "limit_room": (
        "select on limits", "select on limits_held", "select on limit_starts",
        "execute on host_of", "execute on site_of", "execute on horizon_of",
    ),
    "take_limits": (
        "execute on count_limits", "select on limits",
        "select insert update delete on limit_starts", "execute on site_of",
        "execute on slice_of", "execute on horizon_of",
    ),
    "give_limits": (
        "execute on count_limits", "execute on waiters_of", "execute on call_next",
    ),
    "turn_room": (
        "select on limits", "execute on waiters_of", "execute on site_of",
        "execute on turn_weight", "execute on can_come",
    ),
    "next_in_turn": ("execute on waiters_of", "execute on can_come"),
    "waiters_of": ("select on turns_held",),
    "note_turn": (
        "execute on waiters_of", "execute on forget_turns",
        "select insert delete on limit_waiters", "select update on limit_turns",
    ),
    "forget_turns": (
        "select on turns_held", "select update delete on limit_waiters",
        "select update on limit_turns",
    ),
    "can_come": ("select on worker_lanes", "select on slots_held"),
    "turn_weight": ("select on limits", "select on worker_lanes"),
    "keep_turns": (
        "select on turns_held", "select update on limit_turns", "select on limits",
        "execute on note_turn", "execute on forget_turns", "execute on waiters_of",
        "execute on site_of",
        "execute on turn_weight", "execute on call_workers", "execute on call_next",
        "execute on can_come",
    ),
    "leave_turns": (
        "select on limit_waiters", "select on turns_held", "select update on limit_turns",
        "execute on call_next",
    ),
    "call_next": (
        "execute on waiters_of", "select on limits", "execute on site_of",
        "execute on call_workers",
    ),
    "call_workers": (),
    "freed_types": ("select on job_types", "select on limits", "select on limits_held"),
    "wake": (),
    "take_keys": (
        "select insert update delete on key_holders", "insert select on key_waiters",
        "select on ready", "select on jobs",
    ),
    "bring_back": ("select update delete on key_waiters", "insert on ready"),
    "free_keys": ("select update delete on key_holders", "execute on bring_back"),
    "step_in": ("select on key_holders", "execute on bring_back", "execute on wake"),
    "park": (
        "select update delete on ready", "select on jobs", "select update on key_holders",
        "insert on key_waiters",
    ),
    "miscounted": (
        "select on lease", "select on self_finished", "select on slots_held",
        "select on limits_held", "select on limit_holds",
    ),
    "recount": (
        "execute on miscounted", "execute on recount_queued", "select on limit_holds",
        "select on lease", "select on self_finished",
        "select insert on slot_holders", "select update on slot_counts", "execute on count_slots",
        "select insert on limit_holders", "select update on limit_counts",
        "execute on count_limits",
    ),
    "lost_jobs": (
        "select on jobs", "select on outcome", "select on lease", "select on ready",
        "select on delayed", "select on key_waiters", "select on awaiting",
    ),
    "look_for_lost": (
        "select on jobs", "select on outcome", "select on lease", "select on ready",
        "select on delayed", "select on key_waiters", "select on awaiting",
    ),
    "sample_lost": ("select on jobs", "execute on look_for_lost"),
    "end_lost": (
        "execute on lost_jobs", "execute on look_for_lost", "execute on emit",
        "select on jobs", "insert on outcome",
        "select on attempts", "select on progress", "select delete on job_keys",
    ),
    "sweep_keys": (
        "select on key_waiters", "select update on key_holders", "select on lease",
        "select on self_finished", "execute on free_keys", "execute on bring_back",
        "execute on wake",
    ),
    "claim": (
        "select on control", "select update on worker_lanes", "select on slots_held",
        "execute on count_slots",
        "select update delete on ready", "select on jobs", "select on progress", "insert on lease",
        "select on job_types", "select update on limits", "select on approvals",
        "execute on limit_room", "execute on seal", "execute on take_limits",
        "execute on take_keys", "execute on unapproved", "execute on send_back",
        "execute on waiters_of", "execute on turn_room", "execute on keep_turns",
        "execute on leave_turns",
        "select on watches", "execute on emit",
    ),
    "origins": ("select on jobs",),
    "retry_delay": ("select on job_types",),
    "status_of": ("select on jobs_view",),
    "joined": (),
    "give_back": (
        "execute on count_slots", "execute on free_keys", "execute on give_limits",
    ),
    "take_self_finished": ("select update delete on self_finished",),
    "hold_limits": (),
    "limit_holders": (),
    "renew_holds": (),
    "drop_holds": (),
    "sweep_holds": (),
    "fold_finished": (
        "execute on sweep_holds",
        "select on self_finished", "execute on take_self_finished", "execute on give_back",
        "execute on freed_types", "execute on wake",
    ),
    "settle": (
        "select delete on lease", "select insert on outcome", "select insert on attempts",
        "insert on ready", "insert on delayed", "select delete on job_keys", "select on jobs",
        "execute on retry_delay", "execute on take_self_finished", "execute on joined",
        "execute on give_back", "execute on note_analysis", "execute on admit",
        "execute on status_of", "execute on freed_types",
        "execute on free_pause", "execute on forget_free_attempts",
        "select on watches", "execute on emit",
    ),
    "free_pause": (),
    "forget_free_attempts": (),
    "heartbeat": ("select update on lease",),
    "report": (
        "select update on lease", "select insert update on progress", "insert on logs",
        "select on watches", "execute on emit",
    ),
    "peek": (
        "select update delete on delayed", "select insert on ready", "select on control",
    ),
    "measure": (
        "select on worker_lanes", "select on slots_held", "select on ready", "execute on lane_of",
    ),
    "measure_lane": ("select on ready", "execute on lane_of"),
    "standing": (
        "select on jobs", "select on ready", "select on key_holders", "select on key_waiters",
        "select on job_types", "select on limits", "select on workers", "execute on lane_of",
        "execute on limit_room", "execute on next_in_turn",
    ),
    "recent_pace": ("select on outcome",),
    "lead": ("select insert update on leader",),
    "leads": ("select on leader",),
    "first_since": ("select on jobs",),
    "ended_numbers": ("select on outcome",),
    "search_jobs": (
        "select on jobs", "select on jobs_view", "select on outcome", "select on lease",
        "select on ready", "select on delayed", "select on key_waiters", "select on awaiting",
        "select on worker_lanes", "select on workers", "execute on first_since",
        "execute on ended_numbers", "execute on lane_of", "execute on analysis_of",
        "execute on mentions", "execute on costs_at_most", "execute on is_within",
    ),
    "matching": ("execute on search_jobs",),
    "count_states": (
        "select on jobs", "select on outcome", "select on lease", "select on ready",
        "select on delayed", "select on key_waiters", "select on awaiting",
        "execute on lane_of", "execute on analysis_of", "execute on is_within",
    ),
    "mentions": (),
    "is_within": (),
    "costs_at_most": ("select on approvals",),
    "remove_jobs": (
        "select delete on outcome", "select delete on attempts", "select delete on progress",
        "select delete on logs", "select delete on steps", "select delete on approvals",
        "select delete on decisions", "select delete on deadlines", "select delete on jobs",
        "select delete on schedule_jobs",
    ),
    # Definer: its callers change jobs but have no rights on events and watches.
    "emit": (),
    "emit_removal": (),
    "log_changes": (
        "select update on watches", "select insert on events", "select on attempts",
        "select on progress", "select on jobs", "execute on present", "execute on lane_of",
    ),
    "present": ("select on jobs_view", "execute on lane_of"),
    "log_present": ("select insert on events", "execute on present"),
    "open_watches": (
        "select insert update on watches", "usage on events_id_seq", "select insert on events",
        "execute on log_present",
    ),
    "reconcile": (
        "select update on watches", "insert on events", "execute on log_present",
    ),
    "seen_log": ("select on events", "select on event_log"),
    "log_identity": (),
    "events_between": ("select on events", "execute on seen_log"),
    "prune_events": (),
    "forget_foreign_events": (
        "select delete on events", "select update on event_log", "select update on watches",
    ),
    # These two run with their owner's rights: workers delete only what the policy expires.
    "retain": (),
    "prune_records": (),
    "expire_overaged": (
        "execute on leads", "select update delete on deadlines", "select on jobs",
        "select on job_types", "select update delete on ready", "select update delete on delayed",
        "select update delete on key_waiters", "select update delete on awaiting",
        "select delete on job_keys", "select insert on outcome", "execute on step_in",
        "select update on lease", "execute on settle",
        "execute on emit",
    ),
    "overdue": (
        "select on lease", "select on workers", "select on job_types", "select on worker_lanes",
    ),
    "watch": (
        "execute on lead", "execute on overdue", "select update on lease", "execute on settle",
        "select on deadlines", "select on awaiting", "select on self_finished",
        "select on limit_holds", "execute on spare",
    ),
    "losses_of": ("select on suspects",),
    "spare": ("select insert update on suspects",),
    "bury": (
        "select update on lease", "execute on settle", "select update on workers",
        "execute on spare", "execute on wake",
    ),
    "is_in_use": (
        "select on workers", "select on ready", "select on lease", "select on key_waiters",
        "select on awaiting", "select on delayed", "execute on analysis_of",
    ),
    "needed_by": (
        "select on lease", "select on worker_lanes", "select on job_types", "select on limits_held",
        "execute on is_in_use",
    ),
    "roll_back": (
        "select on control_history", "select insert update delete on worker_lanes",
        "select insert update delete on limits", "select insert update delete on schedules",
        "select insert update on schedule_state", "select update on control",
        "execute on needed_by",
    ),
    "delete_limit": (
        "select delete on limits", "select update on control", "execute on needed_by",
    ),
    "freeze": (*LANE_CHANGE, "select insert update on frozen_lanes"),
    "thaw": (*LANE_CHANGE, "select delete on frozen_lanes"),
    "step": ("select update on lease", "select insert on steps"),
    "guard": (),
    "finish_apart": (),
    "lock_limits": ("select update on limits",),
    "limit_shortage": ("execute on limit_room", "execute on turn_room"),
    "acquire": (
        "select update on limits", "select update on lease", "select on job_types",
        "execute on lock_limits", "execute on limit_shortage", "execute on take_limits",
        "execute on keep_turns",
    ),
    "release_limits": (
        "select update on lease", "execute on give_limits", "select delete on call_holds",
    ),
    "acquire_for_remote": ("execute on acquire", "select insert on call_holds"),
    "end_call_holds": (
        "select update on lease", "select delete on call_holds", "select on jobs",
        "execute on release_limits", "execute on freed_types", "execute on wake",
    ),
    "take_slot": (
        "select insert update on schedule_slots", "execute on submit", "execute on keep_writers",
    ),
    # With its owner's rights: it checks that the caller is leader or holds the check.
    "fire": (),
    "run_schedule": (
        "select update on schedules", "select update on schedule_state",
        "select on schedule_slots", "execute on take_slot",
    ),
}  # fmt: skip
