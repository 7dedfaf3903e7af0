"""Webhooks: URLs that are sent the ends of jobs, their settings, and the signature of a request.

Requests follow https://www.standardwebhooks.com.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Annotated, Any, Final, TypedDict
from urllib.parse import urlsplit
from uuid import UUID

from annotated_types import Interval, MaxLen

from laneway.domain.annotations import INLINE, CheckedBy, Doc
from laneway.domain.change_rules import checks_of, validate_settings
from laneway.domain.end_hook import END_STATUSES
from laneway.domain.job import NAME_BYTES
from laneway.domain.lane import JobType, LaneName, check_job_type, check_lane_name
from laneway.domain.suggestion import suggest
from laneway.domain.text import check_text, is_printable
from laneway.errors import InvalidInput

# The job type of deliveries, and the lane that is created for it.
WEBHOOK_TYPE: Final = "laneway.webhook"
WEBHOOK_LANE: Final = "webhooks"
# The submitter of deliveries: no principal has this name.
WEBHOOK_SUBMITTER: Final = "laneway"
# The tag of a delivery that names the webhook that existed at the end, by its id.
WEBHOOK_ID_TAG: Final = "webhook_id:"
DELIVERY_RULE: Final = "only the end of a job submits deliveries"
DELIVERY_CURE: Final = "start a worker or a server, or set LANEWAY_WEBHOOKS=on where it is off"
EVENTS: Final = tuple(f"job.{status}" for status in END_STATUSES)
TEST_EVENT: Final = "webhook.test"
FILTERS: Final = ("job_types", "workspaces", "lanes", "tags")
URL_BYTES: Final = 2048
MOST_NAMES: Final = 100
# How long the secret before a change signs too.
OLD_SECRET_S: Final = 86_400

_SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - the prefix of every secret
_NEW_SECRET_BYTES: Final = 32
_SECRET_BYTES: Final = range(24, 65)


def check_webhook_name(value: object, field: str = "name") -> str:
    """A webhook's name, by the rules of lanes."""
    return check_lane_name(value, field)


def check_submitted_type(job_type: str, field: str = "job_type") -> str:
    """A job type; refuse deliveries that a caller submits, who could have a message signed."""
    if job_type == WEBHOOK_TYPE:
        raise InvalidInput(field, DELIVERY_RULE)
    if hasattr(job_type, "flow_job"):
        name = getattr(job_type, "__name__", "page")
        raise InvalidInput(field, f"is a handler: write {name}.submit(…), or its job type as text")
    return check_job_type(job_type, field)


def check_url(value: object, field: str = "url") -> str:
    """An absolute http or https URL without credentials and fragment."""
    text = check_text(value, field, max_bytes=URL_BYTES)
    if not text.isascii() or not is_printable(text) or " " in text:
        rule = "must be printable ASCII: write other characters as %XX, other hosts as xn--…"
        raise InvalidInput(field, rule)
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise InvalidInput(field, "is not a URL") from None
    if parts.scheme not in ("http", "https"):
        raise InvalidInput(field, "must begin with https:// or http://")
    if not parts.hostname or port == 0:
        raise InvalidInput(field, "must name a host and, if any, a port from 1 to 65535")
    if "@" in parts.netloc:
        raise InvalidInput(field, "must not contain a user or password: the secret signs requests")
    if parts.fragment:
        raise InvalidInput(field, "must not contain a fragment (#…)")
    return text


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL: its path and query may hold a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/…"


def new_secret() -> str:
    return _SECRET_PREFIX + base64.b64encode(secrets.token_bytes(_NEW_SECRET_BYTES)).decode()


def check_secret(value: object, field: str = "secret") -> str:
    """`whsec_` and 24 to 64 bytes as base64; the message never shows the value."""
    rule = (
        f"must be {_SECRET_PREFIX} and {_SECRET_BYTES[0]} to {_SECRET_BYTES[-1]} bytes as base64;"
        " leave it out to have one generated"
    )
    if not isinstance(value, str):
        raise InvalidInput(field, rule)
    try:
        size = len(_key_of(value)) if value.startswith(_SECRET_PREFIX) else 0
    except (binascii.Error, ValueError):
        size = 0
    if size not in _SECRET_BYTES:
        raise InvalidInput(field, rule)
    return value


def _key_of(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix(_SECRET_PREFIX), validate=True)


def signatures(keys: Iterable[str], message_id: str, timestamp: int, body: bytes) -> str:
    """The header `webhook-signature`: one signature for each secret."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    digests = (hmac.digest(_key_of(secret), signed, hashlib.sha256) for secret in keys)
    return " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)


def _check_events(value: object, field: str = "events") -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not value:
        raise InvalidInput(field, f"must be a list of {', '.join(EVENTS)}")
    for i, event in enumerate(value):
        if event not in EVENTS:
            near = suggest(str(event), EVENTS)
            raise InvalidInput(f"{field}[{i}]", f"must be one of {', '.join(EVENTS)}{near}")
    return tuple(event for event in EVENTS if event in value)


def _check_names(value: object, field: str) -> tuple[str, ...]:
    """Names to filter by, each once."""
    if not isinstance(value, (list, tuple)):
        raise InvalidInput(field, "must be a list of texts")
    if len(value) > MOST_NAMES:
        raise InvalidInput(field, f"must have at most {MOST_NAMES} items")
    check = {"job_types": check_job_type, "lanes": check_lane_name}.get(field, _check_word)
    names = [check(name, f"{field}[{i}]") for i, name in enumerate(value)]
    return tuple(dict.fromkeys(names))


def _check_word(value: object, field: str) -> str:
    return check_text(value, field, max_bytes=NAME_BYTES)


WebhookName = LaneName
_NAMES: Final = (MaxLen(MOST_NAMES), CheckedBy(_check_names))
Url = Annotated[str, MaxLen(URL_BYTES), CheckedBy(check_url), Doc("Where requests are sent")]
Events = Annotated[
    list[str], CheckedBy(_check_events), Doc("Which ends: job.completed, job.failed, job.cancelled")
]
OnlyTypes = Annotated[list[JobType], *_NAMES, Doc("Only jobs of these types; none: all")]
OnlyWorkspaces = Annotated[list[str], *_NAMES, Doc("Only jobs of these workspaces; none: all")]
OnlyLanes = Annotated[list[str], *_NAMES, Doc("Only jobs of these lanes; none: all")]
OnlyTags = Annotated[list[str], *_NAMES, Doc("Only jobs with one of these tags; none: all")]
Enabled = Annotated[bool, Doc("false: ends submit no deliveries, waiting ones are cancelled")]
TimeoutS = Annotated[int, Interval(ge=1, le=120), Doc("Longest time for one request")]
MaxRetries = Annotated[
    int, Interval(ge=0, le=50), Doc("Retries of a delivery, after 5 s, 20 s … 6 h")
]
Secret = Annotated[
    str,
    MaxLen(128),
    CheckedBy(check_secret),
    Doc("Signs requests, is never shown; the one before signs too for 24 hours"),
]


class WebhookSettings(TypedDict, total=False):
    """The settings of a webhook, as a change names some of them."""

    url: Url
    events: Events
    job_types: OnlyTypes
    workspaces: OnlyWorkspaces
    lanes: OnlyLanes
    tags: OnlyTags
    enabled: Enabled
    timeout_s: TimeoutS
    max_retries: MaxRetries
    secret: Secret


@dataclass(frozen=True, slots=True)
class Webhook:
    """A URL that is sent the ends of jobs; its secret is never read."""

    name: str
    url: str
    events: tuple[str, ...] = EVENTS
    job_types: tuple[str, ...] = ()
    workspaces: tuple[str, ...] = ()
    lanes: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    enabled: bool = True
    timeout_s: int = 15
    max_retries: int = 10
    previous_secret_until: Annotated[
        datetime | None, Doc("Until then the secret before the last change signs too")
    ] = None
    created_at: datetime | None = None
    created_by: str | None = None
    updated_at: datetime | None = None
    updated_by: str | None = None


@dataclass(frozen=True, slots=True)
class SavedWebhook:
    """A webhook after a change, with its secret if Laneway generated it."""

    webhook: Annotated[Webhook, INLINE]
    secret: Annotated[str | None, Doc("Only if it was generated now: it cannot be shown again")] = (
        field(default=None, repr=False)
    )


@dataclass(frozen=True, slots=True)
class TestDelivery:
    """The job that delivers a test event."""

    # Not a class of tests.
    __test__ = False

    job_id: UUID


def validate_webhook_change(change: Mapping[str, object], *, new: bool = False) -> dict[str, Any]:
    """The checked settings that a change names; a new webhook needs `name` and `url`."""
    required = ("name", "url") if new else ()
    return validate_settings("webhook", change, _CHECKS, _FIELDS, required=required)


_CHECKS: Final = {
    "name": lambda field, value: check_webhook_name(value, field),
    **checks_of(WebhookSettings),
}
_FIELDS: Final = frozenset(each.name for each in fields(Webhook))
