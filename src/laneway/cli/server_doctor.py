"""The checks of `laneway doctor` that can be made through a server."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from shlex import quote

from laneway import __version__
from laneway.cli import connection
from laneway.cli.output import moment, visible
from laneway.control.health import SKEW_S, judge_workers
from laneway.control.health_check import HealthCheck, fail, ok, warn
from laneway.domain.token import expiry_text
from laneway.errors import Forbidden, LanewayError, ServerUnreachable, Unauthenticated
from laneway.http import AsyncClient
from laneway.http.models import Me

SERVER = "server"


async def examine_server() -> AsyncIterator[HealthCheck]:
    """Run check by check; stop early if the rest would repeat the same failure."""
    async with connection.connected() as client:
        try:
            ready = await client.get_readiness()
        except ServerUnreachable as error:
            step = "start it with `laneway server`, or correct --server (LANEWAY_SERVER)"
            yield fail(SERVER, str(error), step)
            return
        except LanewayError as error:
            yield fail(SERVER, f"it responds, but is not ready: {error}", "read the server's log")
            return
        yield ok(SERVER, f"{client.address} responds; database reached, schema {ready.schema}")
        began = time.monotonic()
        try:
            me = await client.get_me()
        except Unauthenticated as error:
            yield fail("token", str(error), "create another with `laneway tokens create`")
            return
        took = time.monotonic() - began
        yield judge_token(me, client.token_expires_in)
        yield judge_version(me)
        yield judge_clock(me, took)
        yield judge_permissions(me)
        yield await _check_workers(client)


def judge_token(me: Me, left_s: float | None) -> HealthCheck:
    owner = f"{visible(me.name)} ({me.kind})"
    if left_s is not None:
        step = f"create another with `laneway tokens create {quote(visible(me.name))} --name …`"
        return warn("token", f"the token of {owner} {expiry_text(left_s)}", step)
    end = me.token_expires_at
    until = "without expiry" if end is None else f"valid until {moment(end)}"
    return ok("token", f"accepted: {owner}, {until}")


def judge_version(me: Me) -> HealthCheck:
    if me.server_version == __version__:
        return ok("version", f"{__version__}, here and at the server")
    return warn(
        "version",
        f"the server has {visible(me.server_version or 'an older version')}, this command"
        f" {__version__}",
        "install the same version of laneway here as at the server",
    )


def judge_clock(me: Me, took_s: float) -> HealthCheck:
    if me.server_time is None:
        return warn("clock", "not checked: an older server does not say its time", "upgrade it")
    skew = (me.server_time - datetime.now(UTC)).total_seconds() + took_s / 2
    text = f"the server is {abs(skew):.3f} s {'ahead of' if skew > 0 else 'behind'} this host"
    if abs(skew) > SKEW_S + took_s:
        return warn("clock", text, "synchronise the clocks (NTP): log times disagree")
    return ok("clock", text)


def judge_permissions(me: Me) -> HealthCheck:
    name = "permissions"
    if me.permissions:
        return ok(name, ", ".join(sorted(me.permissions)))
    step = f"laneway roles grant {quote(visible(me.name))} ROLE --scope SCOPE"
    return warn(name, "none: the token can do nothing", step)


async def _check_workers(client: AsyncClient) -> HealthCheck:
    try:
        return judge_workers((await client.read_status()).workers)
    except Forbidden:
        step = "use a token with workers:view, or run `laneway doctor` on the database"
        return warn("workers", "not checked: the token lacks workers:view", step)
    except LanewayError as error:
        return fail("workers", f"not checked: {error}", "run `laneway doctor` again")
