"""Settings of the shop; tasks are jobs in its own database."""

import os
from urllib.parse import parse_qs, unquote, urlsplit

import django

_url = urlsplit(os.environ["DATABASE_URL"])
_query = {name: values[0] for name, values in parse_qs(_url.query).items()}

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _url.path.removeprefix("/"),
        "USER": unquote(_url.username or ""),
        "PASSWORD": unquote(_url.password or ""),
        "HOST": _query.get("host", _url.hostname or ""),
        "PORT": _query.get("port", _url.port or ""),
    }
}

TASKS = {
    "default": {
        "BACKEND": "laneway.integrations.django.backend.LanewayBackend",
        "QUEUES": ["default", "mail"],
        "OPTIONS": {
            "LANES": {"mail": "outgoing-mail"},
            "HANDLER": {"max_retries": 1},
        },
    }
}
# A second database for jobs: they are submitted after the commit.
if "JOBS_DATABASE_URL" in os.environ:
    TASKS["default"]["OPTIONS"]["DATABASE_URL"] = os.environ["JOBS_DATABASE_URL"]

LANEWAY_DASHBOARD_URL = "http://127.0.0.1:8420/ui/"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "laneway.integrations.django",
    "shop",
]
if django.VERSION < (6, 0):
    INSTALLED_APPS.append("django_tasks")

MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
ALLOWED_HOSTS = ["127.0.0.1"]
DEBUG = os.environ.get("DEBUG") == "1"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "shop.urls"
SECRET_KEY = os.environ.get("SECRET_KEY", "only for this example")
STATIC_URL = "static/"
