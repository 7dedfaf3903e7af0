"""A model without a table: Django's admin lists models, and this one is the link to the jobs."""

from django.db import models


class Dashboard(models.Model):  # type: ignore[misc]
    """The dashboard; its permission `laneway.view_dashboard` shows the link."""

    class Meta:
        managed = False
        default_permissions = ("view",)
        verbose_name = "job"
        verbose_name_plural = "jobs"
