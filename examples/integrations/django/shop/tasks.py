"""The tasks of the shop."""

try:
    from django.tasks import TaskContext, task
except ModuleNotFoundError:  # before Django 6
    from django_tasks import TaskContext, task

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
