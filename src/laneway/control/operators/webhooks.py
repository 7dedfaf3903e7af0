"""Operations on webhooks, done in a database."""

from __future__ import annotations

from laneway.control import webhooks
from laneway.control.operators.table import Operator, PageRequest, implement, implement_list
from laneway.domain.page import Page, page_by_name
from laneway.domain.webhook import Webhook
from laneway.operations import webhooks as operations


async def _list_webhooks(who: Operator, page: PageRequest) -> Page[Webhook]:
    found = await webhooks.inspect(who.db)
    return page_by_name(found, lambda each: each.name, page.limit, page.cursor)


implement_list(operations.list_webhooks, _list_webhooks)
implement(
    operations.create_webhook,
    lambda who, name, settings: webhooks.create(who.db, name, settings, by=who.by),
)
implement(operations.get_webhook, lambda who, name: webhooks.get(who.db, name))
implement(
    operations.change_webhook,
    lambda who, name, change: webhooks.change(who.db, name, change, by=who.by),
)
implement(operations.delete_webhook, lambda who, name: webhooks.delete(who.db, name, by=who.by))
implement(
    operations.rotate_webhook_secret, lambda who, name: webhooks.rotate(who.db, name, by=who.by)
)
implement(operations.test_webhook, lambda who, name: webhooks.test(who.db, name, by=who.by))
