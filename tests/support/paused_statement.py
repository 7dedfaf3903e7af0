"""Stops a statement of an SQL function after its snapshot, so that other transactions commit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.store_client import StoreClient

_LOCK = 7701
_PAUSE = f"""
create or replace function public.pause() returns boolean language plpgsql volatile as $$
begin
    perform pg_advisory_xact_lock_shared({_LOCK});
    return true;
end $$
"""


@contextmanager
def paused_where(db: StoreClient, function: str, condition: str) -> Iterator[None]:
    """Makes calls of the function wait where it reads rows by this condition, until the end.

    Run the other transactions inside the block, on other connections than the waiting one.
    """
    db.do(_PAUSE)
    text = db.one("select pg_get_functiondef(%s::regproc)", f"laneway.{function}")
    assert condition in text
    db.do("select pg_advisory_lock(%s)", _LOCK)
    try:
        # Percent signs would be parameters of the driver.
        db.conn.execute(text.replace(condition, f"{condition} and public.pause()").encode(), None)
        yield
    finally:
        db.do("select pg_advisory_unlock(%s)", _LOCK)
        db.conn.execute(text.encode(), None)
