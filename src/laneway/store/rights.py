"""Rights that each statement needs, and the statements of each database role."""

from __future__ import annotations

from typing import Final

from laneway.store.benchmark_rights import BENCHMARK
from laneway.store.edge_rights import EDGE_STATEMENTS
from laneway.store.flow_rights import FLOW_STATEMENTS
from laneway.store.function_rights import LANE_CHANGE
from laneway.store.hook_rights import HOOK_STATEMENTS, WEBHOOK_STATEMENTS, WEBHOOK_WORKER
from laneway.store.schedule_rights import SCHEDULE_STATEMENTS
from laneway.store.wait_rights import EVENT_SENDER, WAIT_STATEMENTS, WAITING_WORKER

_EARLIER_JOB: Final = "select on jobs_as_text"
_READ_JOB: Final = ("select on jobs_as_read", _EARLIER_JOB, "execute on lane_of")
_GRANTED: Final = ("select on principals", "select on role_grants", "select on roles")
# For the previous version, whose statements name the parents of the counters.
_EARLIER_SLOTS: Final = "select on slot_usage"
_EARLIER_COUNTERS: Final = ("select delete on slot_usage", "select delete on limit_usage")
# For servers of the previous version, which write batches to the tables.
_EARLIER_BATCH: Final = (
    "usage on jobs_seq_seq", "insert on jobs", "insert on ready", "insert on delayed",
    "select insert on job_keys", "select insert on deadlines", "execute on place",
)  # fmt: skip
# Rights that only programs of the previous version need.
EARLIER: Final = frozenset({_EARLIER_JOB, _EARLIER_SLOTS, *_EARLIER_COUNTERS, *_EARLIER_BATCH})
_LIMIT_CHANGE: Final = ("select update on limits", "select update on control")

STATEMENTS: Final[dict[str, tuple[str, ...]]] = {
    **WAIT_STATEMENTS,
    "access/authenticate_session": ("select update on sessions", *_GRANTED),
    "access/authenticate_token": ("select update on tokens", *_GRANTED),
    "access/change_role": ("select update on roles",),
    "access/charge_quota": ("execute on charge_quota",),
    "access/check_quota": (
        "execute on check_quota", "select on job_keys", "select on job_types",
    ),
    "access/close_session": ("select delete on sessions", "select on principals"),
    "access/count_admins": ("select on role_grants", "select on principals"),
    "access/create_first_principal": ("select insert on principals",),
    "access/create_link": ("insert on login_links",),
    "access/create_principal": ("select insert on principals",),
    "access/create_role": ("select insert on roles",),
    "access/create_token": ("select insert on tokens", "select on principals"),
    "access/delete_role": ("select delete on roles", "select on role_grants"),
    "access/grant_role": ("select insert update on role_grants", "select on principals"),
    "access/lock_role_shared": ("select update on roles",),
    "access/list_expiring_tokens": ("select on tokens", "select on principals"),
    "access/list_grants": ("select on role_grants", "select on principals"),
    "access/list_principals": ("select on principals",),
    "access/list_roles": ("select on roles",),
    "access/list_tokens": ("select on tokens", "select on principals"),
    "access/lock_admins": (),
    "access/lock_principal": ("select update on principals",),
    "access/lock_role": ("select update on roles",),
    "access/lock_token": ("select update on tokens", "select on principals"),
    "access/open_session": (
        "select delete on login_links", "select insert delete on sessions", "select on principals",
    ),
    "access/review_access": ("select on tokens", "select on sessions", *_GRANTED),
    "access/revoke_grant": ("select delete on role_grants", "select on principals"),
    "access/revoke_token": ("select update on tokens", "select on principals"),
    "access/sweep_quota": ("execute on sweep_queued",),
    "access/switch_principal": (
        "select update on principals", "select delete on sessions", "select delete on login_links",
    ),
    "approvals/decide_job": ("select on jobs", "execute on decide"),
    "approvals/read_decisions": ("select on jobs", "select on decisions"),
    "approvals/read_seal": (
        "select on jobs", "select on approvals", "select on job_types", "execute on seal",
    ),
    "audit/list_entries": ("select on audit",),
    "audit/record_entry": ("insert on audit",),
    **dict.fromkeys(BENCHMARK, ()),
    "bulk/begin_run": ("select insert delete on bulk_runs",),
    "bulk/read_run": ("select on bulk_runs",),
    "bulk/report_run": ("select update on bulk_runs",),
    "control/pause_claims": ("update on control",),
    "control/read_gate": ("select on control",),
    "control/wake_noted": (),
    "control/wake_workers": (),
    **EDGE_STATEMENTS,
    **HOOK_STATEMENTS,
    "events/check_resume": (
        "select on watches", "select on event_log", "execute on log_identity",
    ),
    "events/emit_jobs": ("execute on emit",),
    "events/find_numbers": ("select on jobs",),
    "events/renew_watches": ("select update on watches",),
    "events/open_watches": ("execute on open_watches",),
    "events/read_between": ("execute on events_between", "execute on log_identity"),
    "events/read_job_events": (
        "select on events", "select on watches", "select on event_log",
        "execute on log_identity",
    ),
    "events/read_jobs": _READ_JOB,
    "events/read_jobs_without_values": _READ_JOB,
    "events/reconcile_watches": ("execute on reconcile",),
    "events/take_snapshot": ("execute on log_snapshot", "execute on log_identity"),
    **FLOW_STATEMENTS,
    "freeze/freeze_lanes": ("execute on freeze",),
    "freeze/read_frozen": ("select on frozen_lanes",),
    "freeze/thaw_lanes": ("execute on thaw",),
    "freeze/read_progress": (
        "select on worker_lanes", "select on lease", "select on jobs", "select on workers",
    ),
    "health/count_attention": ("select on awaiting", "select on outcome", "select on schedules"),
    "health/count_lapsed": ("select on leader", "select on lease", "select on workers"),
    "health/end_lost": ("execute on end_lost",),
    "health/find_blockers": (),
    "health/find_lost": ("execute on sample_lost",),
    "health/find_old_waits": ("select on waiting", "select on jobs"),
    "health/find_stuck": ("execute on stuck_waits",),
    "health/mend_waits": ("execute on mend_waits",),
    "health/find_unhandled": (
        "select on jobs", "select on ready", "select on workers", "execute on lane_of",
    ),
    "health/look_for_lost": ("execute on look_for_lost",),
    "health/find_oldest_snapshot": (),
    "health/measure_tables": (),
    "health/recount_usage": ("execute on recount",),
    "health/read_migrations": ("select on migrations",),
    "health/read_rights": (),
    "health/read_role": (),
    "health/read_server": (),
    "health/read_role_settings": (),
    "health/read_settings": (),
    "health/set_lock_timeout": (),
    "history/list_changes": ("select on control_history",),
    "history/list_transaction_changes": ("select on control_history",),
    "history/read_workspace": ("select on control_history",),
    "history/restore_state": ("execute on roll_back",),
    "idempotency/await_key": (),
    "idempotency/delete_unfinished": ("select delete on idempotency",),
    "idempotency/save_response": ("select insert update on idempotency",),
    "idempotency/lock_key": (),
    "idempotency/read_response": ("select on idempotency",),
    "job_types/list_names": ("select on job_types",),
    "job_types/list_types": (
        "select on job_types", "select on workers", "execute on lane_of",
    ),
    "job_types/find_conflicts": ("execute on publication_conflicts",),
    "job_types/delete_publisher": (
        "select delete on type_publishers", "select delete on end_hooks",
    ),
    "job_types/list_publishers": ("select on type_publishers", "execute on is_current_publisher"),
    "job_types/publish_types": (
        "select insert update on job_types", "execute on save_publications",
    ),
    "job_types/read_types": ("select on job_types",),
    "job_types/touch_publishers": ("select update on type_publishers",),
    "jobs/cancel_job": ("select on jobs", "execute on cancel"),
    "jobs/count_jobs": ("execute on search_jobs",),
    "jobs/count_states": ("execute on count_states",),
    "jobs/delete_job": (
        "select on jobs", "execute on remove_jobs", "execute on emit_removal",
    ),
    "jobs/explain_job": (
        "select on jobs", "select on control", "select on ready", "select on delayed",
        "select on lease", "select on job_types", "select on worker_lanes", "select on workers",
        "select on slots_held", "select on key_waiters", "select on leader",
        _EARLIER_SLOTS,
        "execute on lane_of", "execute on queue_position", "execute on recent_pace",
    ),
    "jobs/find_ids": ("execute on find_ids",),
    "jobs/find_keys": ("select on job_keys", "select on jobs_view"),
    "jobs/find_circle": (
        "select on lease", "select on jobs", "select on ready", "select on key_waiters",
        "select on key_holders", "select on job_types", "select on workers",
        "select on worker_lanes", "select on limits", "select on limits_held",
        "execute on lane_of",
    ),
    "jobs/note_wait": ("execute on note_wait",),
    "jobs/read_parents": (
        "select on jobs", "select on jobs_view", "select on links", "select on open_edges",
    ),
    "jobs/find_own_ahead": (
        "select on jobs", "select on ready", "select on workers", "execute on lane_of",
    ),
    "jobs/get_attempts": (
        "select on jobs", "select on attempts", "select on outcome", "select on lease",
        "select on workers", "select on logs",
    ),
    "jobs/get_job": _READ_JOB,
    "jobs/list_awaiting": (
        "select on jobs_view", "select on awaiting", "select on jobs",
        "execute on mentions", "execute on costs_at_most", "execute on is_within",
    ),
    "jobs/list_jobs": (*_READ_JOB, "select on jobs", "execute on search_jobs"),
    "jobs/match_jobs": ("select on jobs", "execute on search_jobs"),
    "jobs/place_batch": (
        "select on jobs", "select on job_types", "insert on deadlines", "execute on start_approval",
    ),
    "jobs/find_newest_job": ("select on jobs",),
    "jobs/open_batch": ("select on job_types", "select on watches"),
    "jobs/read_places": ("select on jobs", "execute on lane_of"),
    "jobs/reprioritize_job": ("select on jobs", "execute on reprioritize"),
    "jobs/reserve_keys": ("select insert on job_keys",),
    "jobs/retry_job": ("select on jobs", "execute on retry"),
    "jobs/run_job_now": ("select on jobs", "execute on run_now"),
    "jobs/submit_batch": ("execute on submit_batch",),
    "jobs/submit_and_note": ("execute on submit",),
    "jobs/submit_job": ("execute on submit",),
    "jobs/submit_requests": ("execute on submit_requests", *_EARLIER_BATCH),
    "jobs/wait_job": ("select on jobs", "select on outcome", "select on lease"),
    "lanes/list_active_jobs": (
        "select on lease", "select on jobs", "select on workers", "select on progress",
    ),
    "lanes/assign_types": ("execute on assign_types",),
    "lanes/create_lane": ("select insert on worker_lanes", "select update on control"),
    "lanes/find_horizon": (),
    "lanes/find_below_floors": ("select on ready",),
    "lanes/count_running": ("select on lease",),
    "lanes/find_waiting": (
        "select on ready", "select on key_waiters", "select on awaiting", "select on delayed",
        "select on waiting", "execute on analysis_of",
    ),
    "lanes/load_lanes": ("execute on load_lanes",),
    "lanes/lock_lanes": (),
    "lanes/measure_lane": ("execute on measure_lane",),
    "lanes/measure_lanes": ("execute on measure",),
    "lanes/move_type": LANE_CHANGE,
    "lanes/peek_lanes": ("execute on peek",),
    "lanes/peek_and_touch": ("execute on peek", "select update on workers"),
    "lanes/read_lanes": ("select on control", "select on worker_lanes"),
    "lanes/tune_lane": LANE_CHANGE,
    "leases/fail_worker": ("execute on fail_worker",),
    "leases/claim_jobs": ("execute on claim", "execute on losses_of"),
    "leases/claim_with_origins": (
        "execute on claim", "execute on losses_of", "execute on origins",
    ),
    "leases/finish_attempt": ("execute on finish_in_transaction",),
    "leases/guard_attempt": ("execute on guard",),
    "leases/park_jobs": ("execute on park",),
    "leases/check_transaction": (),
    "leases/reclaim_leases": ("execute on run_watchdog", "select on lease", "select on leader"),
    "leases/renew_leases": ("execute on heartbeat",),
    "leases/report_progress": ("execute on report",),
    "leases/resign_leader": ("select update on leader",),
    "leases/settle_jobs": ("execute on settle",),
    "limits/acquire_limit": ("execute on acquire",),
    "limits/create_limit": ("select insert on limits", "select update on control"),
    "limits/drop_holds": ("execute on drop_holds",),
    "limits/find_limits": ("select on limits",),
    "limits/list_holding_jobs": ("select on lease", "select on jobs", "select on workers"),
    "limits/list_names": ("select on limits",),
    "limits/get_limits": ("select on limits",),
    "limits/acquire_for_remote": ("execute on acquire_for_remote",),
    "limits/end_call_holds": ("execute on end_call_holds",),
    "limits/hold_limit": ("execute on hold_limits",),
    "limits/find_holders": ("execute on limit_holders",),
    "limits/renew_holds": ("execute on renew_holds",),
    "limits/delete_limit": ("execute on delete_limit",),
    "limits/read_limits": (
        "select on limits", "select on limits_held", "select on job_types", "select on ready",
        "select on limit_usage",
    ),
    "limits/release_limit": ("execute on release_limits",),
    "limits/tune_limit": _LIMIT_CHANGE,
    "remote/claim_jobs": (
        "select update on workers", "execute on claim", "execute on origins",
        "execute on losses_of",
    ),
    "remote/find_ignored": ("select on job_types", "execute on lane_of"),
    "remote/find_attempts": (
        "select on jobs", "select on lease", "select on outcome", "select on attempts",
        "select on workers", "execute on lane_of",
    ),
    "remote/save_steps": ("execute on save_step",),
    "remote/read_leases": ("select on lease", "select on jobs"),
    "remote/read_steps": ("select on steps",),
    "remote/read_types": ("select on job_types",),
    "remote/register_worker": ("select insert update on workers",),
    "remote/stop_workers": (
        "select update on workers", "select delete on slot_counts", "select delete on limit_counts",
        "select on slots_held", "select on limits_held", *_EARLIER_COUNTERS,
    ),
    "remote/touch_workers": (
        "select update on workers", "select on slots_held", _EARLIER_SLOTS,
    ),
    "retention/expire_approvals": ("execute on is_leader", "execute on expire_approvals"),
    "retention/expire_overaged": ("execute on expire_overaged",),
    "retention/release_self_finished": ("execute on is_leader", "execute on release_self_finished"),
    "retention/prune_events": ("execute on prune_events",),
    "retention/prune_records": ("execute on prune_records",),
    "retention/delete_expired": ("execute on delete_expired",),
    "retention/recount_usage": ("execute on is_leader", "execute on recount"),
    "retention/sweep_keys": ("execute on is_leader", "execute on sweep_keys"),
    "row_security/check_role": (),
    "row_security/restrict_jobs": (),
    "stats/count_ends": ("select on outcome", "select on jobs", "select on lease"),
    "stats/count_failures": (
        "select on outcome", "select on jobs", "execute on lane_of", "execute on ended_seqs",
    ),
    "steps/save_step": ("execute on save_step",),
    "steps/list_steps": ("execute on finished_steps",),
    "steps/read_steps": ("select on steps",),
    **SCHEDULE_STATEMENTS,
    "workers/drain_worker": ("select update on workers",),
    "workers/list_workers": (
        "select on workers", "select on slots_held", "select on leader", _EARLIER_SLOTS,
    ),
    "workers/lock_worker": ("select update on workers",),
    "workers/register_worker": ("select insert update on workers",),
    "workers/stop_worker": (
        "select delete on slot_counts", "select delete on limit_counts",
        "select on slots_held", "select on limits_held", "select update on workers",
        *_EARLIER_COUNTERS,
    ),
    "workers/sweep_workers": (
        "select delete on slot_counts", "select delete on limit_counts",
        "select on slots_held", "select on limits_held", *_EARLIER_COUNTERS,
        "select delete on limit_starts", "select delete on workers", "select on lease",
        "select delete on limit_waiters", "select on turns_held",
    ),
    "workers/touch_worker": ("select update on workers",),
    **WEBHOOK_STATEMENTS,
}  # fmt: skip

_READER: Final = (
    "approvals/read_decisions", "approvals/read_seal",
    "control/read_gate", "flows/list_flows", "flows/read_edges", "flows/read_states",
    "freeze/read_frozen", "freeze/read_progress", "health/count_lapsed", "health/find_unhandled",
    "history/list_changes", "limits/list_holding_jobs", "limits/read_limits",
    "job_types/read_types", "jobs/explain_job", "jobs/find_circle",
    "jobs/find_own_ahead", "jobs/find_ids", "jobs/read_parents", "steps/list_steps",
    "handler_waits/list_waits", "jobs/get_attempts", "jobs/get_job", "jobs/count_jobs",
    "jobs/list_awaiting", "jobs/list_jobs", "jobs/match_jobs",
    "jobs/find_newest_job", "jobs/wait_job", "lanes/list_active_jobs", "lanes/measure_lanes",
    "lanes/read_lanes", "workers/list_workers", "schedules/list_slots",
    "schedules/read_schedules", "stats/count_ends", "health/measure_tables",
    "health/read_migrations", "job_types/list_types", "job_types/list_names",
    "job_types/list_publishers", "jobs/count_states", "lanes/measure_lane", "stats/count_failures",
)  # fmt: skip
_CLIENT: Final = (
    *EVENT_SENDER,
    "audit/record_entry", "control/wake_noted", "control/wake_workers",
    "job_types/list_names", "job_types/read_types", "jobs/cancel_job", "jobs/get_attempts",
    "jobs/get_job", "jobs/note_wait", "jobs/open_batch", "flows/cancel_flow",
    "flows/create_flow", "flows/list_flows", "jobs/submit_and_note", "jobs/submit_batch",
    "jobs/submit_job", "jobs/wait_job", "limits/drop_holds", "limits/find_holders",
    "limits/hold_limit", "limits/renew_holds",
)  # fmt: skip
_WORKER: Final = (
    *EDGE_STATEMENTS, *HOOK_STATEMENTS, *WEBHOOK_WORKER,
    "control/wake_workers", "job_types/find_conflicts", "job_types/list_publishers",
    *WAITING_WORKER,
    "job_types/list_names", "job_types/publish_types", "job_types/read_types",
    "job_types/touch_publishers", "lanes/assign_types", "lanes/create_lane", "lanes/find_horizon",
    "lanes/find_below_floors", "lanes/peek_and_touch",
    "lanes/peek_lanes", "lanes/read_lanes", "leases/fail_worker", "leases/claim_jobs",
    "leases/claim_with_origins",
    "leases/park_jobs", "leases/reclaim_leases", "leases/renew_leases", "leases/report_progress",
    "leases/resign_leader", "leases/settle_jobs", "limits/acquire_limit",
    "limits/create_limit", "limits/find_limits", "limits/get_limits", "limits/list_names",
    "limits/release_limit",
    "steps/save_step", "steps/read_steps", "workers/register_worker", "workers/stop_worker",
    "workers/sweep_workers", "workers/touch_worker",
    "retention/expire_approvals", "retention/expire_overaged", "retention/release_self_finished",
    "retention/prune_events", "retention/prune_records", "retention/delete_expired",
    "retention/recount_usage", "retention/sweep_keys",
    "schedules/begin_check", "schedules/create_schedule", "schedules/find_ahead",
    "schedules/find_due", "schedules/fire_slots", "schedules/list_scopes",
    "schedules/plan_schedule", "schedules/read_settings", "schedules/release_checks",
    "schedules/replan_schedule",
    "schedules/stop_schedule",
)  # fmt: skip
# Granted in addition to other roles: a program that submits need not approve.
_APPROVER: Final = (
    "approvals/decide_job", "approvals/read_decisions", "approvals/read_seal",
    "audit/record_entry", "control/wake_workers", "flows/read_edges", "jobs/find_ids",
    "jobs/get_attempts", "jobs/get_job", "jobs/list_awaiting", "jobs/list_jobs",
    "steps/list_steps", "handler_waits/list_waits",
)  # fmt: skip
# On the connections that handlers pass to ctx.guard and ctx.finish.
_HANDLER: Final = ("leases/finish_attempt", "leases/guard_attempt", "leases/check_transaction")

# For batches by COPY, which only the owner of the tables can use, and for `laneway bench`.
OWNERS_STATEMENTS: Final = frozenset(
    {"jobs/find_keys", "jobs/place_batch", "jobs/reserve_keys", "events/emit_jobs"} | {*BENCHMARK}
)

# Statements of each role. The server, and operators at the command line, may run all of them, but
# not change the schema.
ROLES: Final[dict[str, tuple[str, ...]]] = {
    "server": tuple(name for name in STATEMENTS if name not in OWNERS_STATEMENTS),
    "worker": _WORKER,
    "handler": _HANDLER,
    "client": _CLIENT,
    "approver": _APPROVER,
    "reader": _READER,
}
# Every process reads the applied migrations at start; roles that list jobs may also query the view
# that is public to users' SQL.
EVERYONE: Final = ("select on migrations",)
PUBLIC_VIEW: Final = ("select on jobs_view",)
OWNING_ROLES: Final = ("owner", "migrator")
ALL_ROLES: Final = (*OWNING_ROLES, *ROLES)
