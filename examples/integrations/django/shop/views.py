"""Orders and the results of their tasks, as JSON."""

from datetime import timedelta

from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.http import require_POST

from shop.models import Order
from shop.tasks import count_orders, refuse, send_receipt

TASKS = {"send_receipt": send_receipt, "count_orders": count_orders, "refuse": refuse}


@require_POST
@transaction.atomic
def place_order(request: HttpRequest, item: str) -> JsonResponse:
    """Store an order and enqueue its receipt: both, or neither."""
    order = Order.objects.create(item=item)
    result = send_receipt.enqueue(order.pk)
    # The transaction that enqueued it can read it already.
    status = send_receipt.get_result(result.id).status
    if item == "nothing":
        transaction.set_rollback(True)
    return JsonResponse({"order": order.pk, "task": result.id, "status": status})


@require_POST
async def enqueue(request: HttpRequest, name: str) -> JsonResponse:
    """Enqueue a task without arguments, or with those of the query."""
    wanted = TASKS[name]
    if delay := request.GET.get("delay"):
        wanted = wanted.using(run_after=timezone.now() + timedelta(seconds=float(delay)))
    if queue := request.GET.get("queue"):
        wanted = wanted.using(queue_name=queue)
    arguments = {"reason": request.GET["reason"]} if "reason" in request.GET else {}
    result = await wanted.aenqueue(**arguments)
    return JsonResponse({"task": result.id})


async def read(request: HttpRequest, name: str, result_id: str) -> JsonResponse:
    """The result of a task."""
    result = await TASKS[name].aget_result(result_id)
    return JsonResponse(
        {
            "status": result.status,
            "value": result.return_value if result.status == "SUCCESSFUL" else None,
            "attempts": result.attempts,
            "errors": [error.exception_class_path for error in result.errors],
            "queue": result.task.queue_name,
            "priority": result.task.priority,
        }
    )
