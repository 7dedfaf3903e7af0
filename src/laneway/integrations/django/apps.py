"""The Django application, for INSTALLED_APPS."""

from django.apps import AppConfig


class LanewayConfig(AppConfig):  # type: ignore[misc]
    """Laneway: management commands, and a link in the admin."""

    name = "laneway.integrations.django"
    label = "laneway"
    verbose_name = "Laneway"
    default_auto_field = "django.db.models.BigAutoField"
