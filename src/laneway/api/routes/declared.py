"""Routes that derive from declared operations alone."""

from __future__ import annotations

from fastapi import APIRouter

from laneway.api.http.bodies import JobBodyRoute
from laneway.api.operations import add_operations
from laneway.operations.access import ACCESS
from laneway.operations.audit import list_audit_entries
from laneway.operations.flows import FLOWS, send_event
from laneway.operations.lanes import LANES
from laneway.operations.schedules import SCHEDULES
from laneway.operations.webhooks import WEBHOOKS
from laneway.operations.workers import WORKERS

lanes = APIRouter(tags=["lanes"])
add_operations(lanes, *LANES)

gate_and_stats = APIRouter(tags=["workers"])
add_operations(gate_and_stats, *WORKERS)

schedules = APIRouter(tags=["schedules"], route_class=JobBodyRoute)
add_operations(schedules, *SCHEDULES)

flows = APIRouter(tags=["flows"])
add_operations(flows, *FLOWS)

sent_events = APIRouter(tags=["flows"], route_class=JobBodyRoute)
add_operations(sent_events, send_event)

webhooks = APIRouter(tags=["webhooks"])
add_operations(webhooks, *WEBHOOKS)

access = APIRouter(tags=["access"])
add_operations(access, *ACCESS)

audit = APIRouter(tags=["audit"])
add_operations(audit, list_audit_entries)
