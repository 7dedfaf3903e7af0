"""Operations on limits, done in a database."""

from __future__ import annotations

from laneway.control import limits
from laneway.control.operators.history import implement_history
from laneway.control.operators.table import Operator, PageRequest, implement, implement_list
from laneway.domain.limit import LimitStatus
from laneway.domain.page import Page, page_by_name
from laneway.operations import limits as operations


async def _list_limits(who: Operator, page: PageRequest) -> Page[LimitStatus]:
    found = await limits.inspect(who.db)
    return page_by_name(found, lambda each: each.limit.name, page.limit, page.cursor)


implement_list(operations.list_limits, _list_limits)
implement(operations.get_limit, lambda who, name: limits.get(who.db, name))
implement(operations.delete_limit, lambda who, name: limits.delete(who.db, name, by=who.by))
implement_history("limit", operations.list_limit_changes, operations.roll_back_limit)
