"""Options of declared routes that the operations on lanes do not use."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI

from laneway.api.operations import add_operations
from laneway.control.operators.table import Operator, implement
from laneway.domain.lane import LaneName
from laneway.operations.operation import operation
from tests.api.conftest import Ask, People

removed: list[str] = []


@operation(
    "DELETE",
    "/things/{name}",
    permission="workers:manage",
    scope="everywhere",
    command="-",
    status=204,
)
def remove_thing(name: LaneName) -> None:
    """Remove a thing."""


@operation(
    "POST", "/things", permission="workers:manage", scope="everywhere", command="-", takes_key=False
)
def touch_thing(name: LaneName, times: int = 1) -> None:
    """Touch a thing."""


async def _remove(who: Operator, name: str) -> None:
    removed.append(f"{name} by {who.by}")


async def _touch(who: Operator, name: str, times: int = 1) -> None:
    removed.extend([name] * times)


async def test_operation_everywhere_without_output(app: FastAPI, ask: Ask, people: People) -> None:
    implement(remove_thing, _remove)
    implement(touch_thing, _touch)
    router = APIRouter()
    add_operations(router, remove_thing, touch_thing)
    app.router.routes.extend(router.routes)
    olga, otto = people.new("olga", "operator"), people.new("otto", "operator", lanes=["system"])
    answer = await ask(olga, "DELETE", "/things/a")
    assert (answer.status_code, answer.content, removed) == (204, b"", ["a by olga"])
    assert (await ask(otto, "DELETE", "/things/a")).status_code == 403
    assert (await ask(None, "DELETE", "/things/a")).status_code == 401
    key = {"Idempotency-Key": "k"}
    for _ in range(2):
        sent = {"name": "b", "times": 2}
        assert (await ask(olga, "POST", "/things", json=sent, headers=key)).status_code == 200
    assert removed[1:] == ["b"] * 4
    assert (await ask(olga, "POST", "/things", json={"times": 2})).status_code == 422
    assert (await ask(olga, "POST", "/things")).status_code == 422
