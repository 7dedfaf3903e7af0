"""Names by which landed versions call SQL functions, and the functions of this version.

definitions/older_names.sql has a function for each. A role that may call the new one may call both.
"""

from __future__ import annotations

from typing import Final

OLDER_NAMES: Final = {
    "adopt_type": "assign_types",
    "adopt_types": "assign_types",
    "binds": "is_current_publisher",
    "bury": "fail_worker",
    "charge": "charge_quota",
    "check_queue": "check_quota",
    "finish_apart": "finish_in_transaction",
    "fold_finished": "release_self_finished",
    "leads": "is_leader",
    "merge_publications": "save_publications",
    "place": "start_approval",
    "retain": "delete_expired",
    "seen_log": "log_snapshot",
    "standing": "queue_position",
    "step": "save_step",
    "waits_of": "stored_waits",
    "watch": "run_watchdog",
}
