"""Rights of the statements on flows; see rights.py."""

from __future__ import annotations

from typing import Final

FLOW_STATEMENTS: Final[dict[str, tuple[str, ...]]] = {
    "flows/cancel_flow": ("execute on cancel_flow",),
    "flows/count_open": ("execute on measure_waiting", "execute on count_open_flows"),
    "flows/create_flow": ("execute on create_flow",),
    "flows/is_left_alone": ("select on jobs", "execute on is_left_alone"),
    "flows/list_flows": ("execute on list_flows",),
    "flows/read_edges": ("select on jobs", "select on links", "select on open_edges"),
    "flows/read_states": ("execute on flow_states",),
    "flows/retry_flow": ("execute on retry_flow",),
}
