"""A job factory with the rights of one database role."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg

from laneway.errors import DatabaseUnavailable
from laneway.store.database import run_sync
from laneway.store.grants import Privilege, expand
from laneway.store.rights import STATEMENTS
from laneway.store.statement import Statement
from tests.support.job_factory import JobFactory

ROLE = "laneway_test_role"


class RoleFactory(JobFactory):
    """A job factory that runs as another role and records its statements.

    Each statement is first tried without each of the `unproven` privileges that it declares.
    """

    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        super().__init__(conn)
        self.ran: set[str] = set()
        self.unproven: set[Privilege] = set()

    def run(self, statement: Statement[Any]) -> Any:
        if self.unproven:
            declared = self.unproven.intersection(expand(STATEMENTS[statement.name]))
            self.unproven -= {
                each
                for each in declared
                if self.is_denied(each, lambda: run_sync(self.conn, statement))
            }
        return super().run(statement)

    def is_denied(self, privilege: Privilege, work: Callable[[], object]) -> bool:
        """Whether the work needs the privilege; its effects are rolled back."""
        with self.conn.transaction(force_rollback=True):
            self.conn.execute("reset role")
            self.conn.execute(f"revoke {grant_text(privilege)} from {ROLE}".encode())
            self.conn.execute(f"set local role {ROLE}".encode())
            try:
                work()
            except (DatabaseUnavailable, psycopg.errors.InsufficientPrivilege) as error:
                assert "permission denied" in str(error)  # noqa: PT017 - in a loop over grants
                return True
        return False


def grant_text(privilege: Privilege) -> str:
    kind = "" if privilege.kind == "table" else privilege.kind
    return f"{privilege.right} on {kind} laneway.{privilege.name}"
