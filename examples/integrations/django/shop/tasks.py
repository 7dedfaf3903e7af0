"""The tasks of the shop, and a handler with Laneway's context."""

from django.db import connection, transaction

try:
    from django.tasks import TaskContext, task, task_backends
except ModuleNotFoundError:  # before Django 6
    from django_tasks import TaskContext, task, task_backends

from laneway import SyncContext
from shop.models import Order


@task(queue_name="mail", priority=10)
def send_receipt(order_id: int) -> str:
    """Write the receipt of an order."""
    order = Order.objects.get(pk=order_id)
    order.receipt = f"receipt for {order.item}"
    order.save()
    return order.receipt


@task(takes_context=True)
async def count_orders(context: TaskContext) -> dict[str, int]:
    """Count all orders; async, with the context of the attempt."""
    return {"orders": await Order.objects.acount(), "attempt": context.attempt}


@task
def refuse(reason: str) -> None:
    """Fail, to see how a failure is shown."""
    raise Order.DoesNotExist(reason)


lw = task_backends["default"].lw

# A payload, if the task needs one, has two parts: {"args": […], "kwargs": {…}}.
lw.schedule("weekly-count", "shop.tasks.count_orders", cron="0 4 * * MON")


@lw.handler("write_receipts", timeout=600)
def write_receipts(ctx: SyncContext) -> None:
    """Write the receipts of all orders; after a crash, continue with the next order."""
    orders = list(Order.objects.order_by("pk").values_list("pk", flat=True))
    for pk in ctx.track(orders, durable=True):
        send_receipt.func(pk)
    with transaction.atomic():
        written = Order.objects.exclude(receipt="").count()
        # The job ends with this transaction, or not at all.
        ctx.finish(conn=connection, result={"written": written})
