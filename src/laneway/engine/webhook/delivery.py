"""The handler of the jobs that deliver to webhooks."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from laneway import __version__
from laneway.config.settings import Settings
from laneway.domain.handler_signals import Cancel, PublicError
from laneway.domain.lane import Lane
from laneway.domain.retry import RetryPolicy
from laneway.domain.webhook import (
    DELIVERY_RULE,
    TEST_EVENT,
    WEBHOOK_ID_TAG,
    WEBHOOK_LANE,
    WEBHOOK_SUBMITTER,
    WEBHOOK_TYPE,
    signatures,
)
from laneway.engine.registry import Handler, make_handler
from laneway.engine.run.context import Context
from laneway.engine.webhook.http_post import (
    RequestFailed,
    Response,
    Sender,
    retry_after_s,
)
from laneway.engine.webhook.targets import AllowedTargets
from laneway.store import webhooks
from laneway.store.database import Database
from laneway.store.webhooks import Target

# 5 s, 20 s, 80 s … 6 h: ten retries take a day.
RETRIES: Final = RetryPolicy(base=5.0, factor=4.0, cap=21_600.0)
GONE: Final = 410
# Slow receivers do not take the room of other jobs.
DELIVERY_LANE: Final = Lane(WEBHOOK_LANE, max_slots=50, poll_interval_ms=1000)


class DeliveryFailed(PublicError):
    """A request failed; `after_s` is the receiver's Retry-After."""

    def __init__(self, message: str, after_s: float | None = None) -> None:
        super().__init__(message)
        self.after_s = after_s


class DeliveryRefused(PublicError):
    """A delivery that no further attempt can make."""


def delivery_handler(settings: Settings, database: Callable[[], Database]) -> Handler:
    """The handler of WEBHOOK_TYPE; it reads the webhook from the database when it runs."""
    sender = Sender(AllowedTargets(settings.webhook_allow))

    async def deliver(
        ctx: Context, webhook: str, job: dict[str, Any], *, is_test: bool = False
    ) -> dict[str, Any]:
        if ctx.created_by != WEBHOOK_SUBMITTER:
            # Otherwise all callers with jobs:submit could have a message signed.
            raise DeliveryRefused(DELIVERY_RULE)
        target = await database().run(webhooks.target(webhook))
        if target is None:
            raise Cancel(f"the webhook {webhook} was deleted")
        ids = [tag for tag in ctx.tags if tag.startswith(WEBHOOK_ID_TAG)]
        # Deliveries of the version before have no id.
        if ids and f"{WEBHOOK_ID_TAG}{target.id}" not in ids:
            raise Cancel(f"the webhook {webhook} was deleted, and created again since this end")
        if not (target.enabled or is_test):
            raise Cancel(f"the webhook {webhook} is disabled")
        event = TEST_EVENT if is_test else f"job.{job['status']}"
        message = {"type": event, "timestamp": job["finished_at"], "data": job}
        began = time.monotonic()
        response = await _send(ctx, webhook, target, message, sender)
        if not 200 <= response.status < 300:
            raise _failure(ctx, webhook, response)
        return {"status": response.status, "ms": round(1000 * (time.monotonic() - began))}

    made = make_handler(WEBHOOK_TYPE, deliver, lane=WEBHOOK_LANE, retry=_delay_s)
    # The policy counts after a crash, where no function is asked.
    return replace(made, retry=RETRIES, is_internal=True)


async def _send(
    ctx: Context, webhook: str, target: Target, message: object, sender: Sender
) -> Response:
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
    # The same for every attempt, also after a retry by an operator: receivers ignore doubles by it.
    message_id, sent_at = str(ctx.job_id), int(time.time())
    headers = {
        "content-type": "application/json",
        "user-agent": f"Laneway/{__version__}",
        "webhook-id": message_id,
        "webhook-timestamp": str(sent_at),
        "webhook-signature": signatures(target.secrets, message_id, sent_at, body),
    }
    try:
        async with asyncio.timeout(target.timeout_s):
            return await sender.post(target.url, headers, body)
    except TimeoutError:
        rule = f"no response within {target.timeout_s} s"
        raise DeliveryFailed(f"webhook {webhook}: {rule}") from None
    except RequestFailed as error:
        # Also a refused address: another process, or this one after a restart, may allow it.
        raise DeliveryFailed(f"webhook {webhook}: {error}") from None


def _failure(ctx: Context, webhook: str, response: Response) -> Exception:
    if response.text:
        # Not part of the error: it is for those who may read the job's log.
        ctx.log("the receiver responded %s: %s", response.status, response.text)
    message = f"webhook {webhook}: the receiver responded {response.status}"
    if response.status == GONE:
        return DeliveryRefused(f"{message}: it wants no more requests; delete the webhook")
    if 300 <= response.status < 400:
        message += ", a redirect, which is not followed: change the url"
    return DeliveryFailed(message, retry_after_s(response.retry_after, time.time()))


def _delay_s(retry: int, error: BaseException) -> float | None:
    """The pause before a retry; None: the delivery cannot succeed."""
    if isinstance(error, DeliveryRefused):
        return None
    wait = RETRIES.delay(retry, random.random())
    after_s = error.after_s if isinstance(error, DeliveryFailed) else None
    return wait if after_s is None else max(wait, after_s)
