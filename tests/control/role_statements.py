"""Every statement of each database role, at least once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.control.approval_statements import prepare_approver, run_approver
from tests.control.client_statements import prepare_client, run_client
from tests.control.handler_statements import prepare_handler, run_handler
from tests.control.reader_statements import run_reader
from tests.control.role_factory import RoleFactory
from tests.control.server_statements import prepare_server, run_server
from tests.control.worker_statements import prepare_worker, run_worker

ROLE_WORK: dict[str, tuple[Callable[[RoleFactory], Any], Callable[[RoleFactory, Any], None]]] = {
    "worker": (prepare_worker, run_worker),
    "handler": (prepare_handler, run_handler),
    "client": (prepare_client, run_client),
    "approver": (prepare_approver, run_approver),
    "reader": (prepare_client, run_reader),
    "server": (prepare_server, run_server),
}
