"""The orders of the shop."""

from django.db import models


class Order(models.Model):
    """An order, and the receipt that a task writes for it."""

    item = models.CharField(max_length=100)
    receipt = models.CharField(max_length=200, default="")
