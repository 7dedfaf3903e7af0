"""A link to the dashboard in Django's admin: Laneway › Jobs.

LANEWAY_DASHBOARD_URL in the settings is its address, such as https://jobs.example/ui/. Without it
the admin shows nothing of Laneway.
"""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect

from laneway.integrations.django.models import Dashboard


def dashboard_url() -> str | None:
    """The address of the dashboard, which ends with a slash."""
    url: str | None = getattr(settings, "LANEWAY_DASHBOARD_URL", None)
    return url and url.rstrip("/") + "/"


def job_url(job_id: UUID | str) -> str | None:
    """The page of a job, or of a task's result by its id, for links in your own admin."""
    url = dashboard_url()
    return url and f"{url}jobs/{job_id}"


@admin.register(Dashboard)
class DashboardAdmin(admin.ModelAdmin):  # type: ignore[misc]
    """Redirects users with the permission to the dashboard, which has its own login."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return dashboard_url() is not None and self.has_view_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, object] | None = None
    ) -> HttpResponseBase:
        """Redirect to the dashboard."""
        url = dashboard_url()
        if url is None or not self.has_view_permission(request):
            return super().changelist_view(request, extra_context)
        return HttpResponseRedirect(url)
