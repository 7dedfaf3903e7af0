"""Tests of the shop, on a real database and without a worker."""

import pytest
from django.test import Client
from shop.models import Order
from shop.tasks import send_receipt

from laneway import Laneway
from laneway.testing import assert_submitted, clock, fail_next, run_due

pytestmark = pytest.mark.django_db(transaction=True)


def test_order_gets_a_receipt(client: Client, laneway_app: Laneway) -> None:
    order = client.post("/orders/book").json()
    run_due()
    assert Order.objects.get().receipt == "receipt for book"
    assert send_receipt.get_result(order["task"]).return_value == "receipt for book"


def test_order_that_is_rolled_back_gets_none(client: Client, laneway_app: Laneway) -> None:
    client.post("/orders/nothing")
    assert_submitted("shop.tasks.send_receipt", count=0)


def test_receipt_is_tried_again(client: Client, laneway_app: Laneway) -> None:
    client.post("/orders/book")
    fail_next("shop.tasks.send_receipt", OSError("disk full"))
    assert len(run_due().retrying) == 1
    clock.advance_to_next()
    assert run_due().completed[0].attempt == 2


def test_orders_are_counted_every_week(laneway_app: Laneway) -> None:
    clock.advance(days=7)
    [counted] = run_due().completed
    assert counted.result == {"orders": 0, "attempt": 1}
