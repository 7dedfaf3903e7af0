"""Wrong forms of submits and flows: the error names the value and the right form."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from laneway import Context, Laneway
from laneway.client import Client
from laneway.client.parents import parent_ids
from laneway.errors import InvalidInput
from laneway.http import Client as HttpClient

lw = Laneway("postgresql://nowhere")


@lw.handler("fetch")
async def fetch(ctx: Context, n: int) -> int:
    return n


@lw.handler("store")
async def store(ctx: Context, row: dict[str, int]) -> int:
    return row["row"]


def plain(n: int) -> int:
    return n


FORMS = 'write flow.add(mail, user=1), flow.add(mail.job(user=1)) or flow.add("mail", {"user": 1})'
# Untyped here.
handler: Any = fetch
ADDED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "function": (lambda flow: flow.add(plain, n=1), "flow.add: takes no plain function such as pl"),
    "lambda": (lambda flow: flow.add(lambda: 1), f"with @lw.handler, and {FORMS}"),
    "number": (lambda flow: flow.add(5), f"flow.add: takes no int: {FORMS}"),
    "call": (lambda flow: flow.add(handler(None, n=1)), "flow.add: takes no call of a hand"),
    "job": (lambda flow: flow.add(flow.add(fetch, n=1)), "flow.add: takes no job that was submitt"),
    "call without ctx": (
        lambda flow: flow.add(handler(n=1)),
        "ctx: is missing: fetch(ctx, …) calls the function; write fetch.job(…) for a job of a flow",
    ),
    "payload of a handler": (
        lambda flow: flow.add(fetch, {"n": 1}),
        "payload: fetch takes its arguments by name, not as a dict: write n=…",
    ),
    "arguments of a type": (
        lambda flow: flow.add("fetch", n=2),
        "n: is not an option of submit: give an argument of the job in its payload, as in {'n': …}",
    ),
    "after a flow": (
        lambda flow: flow.add("fetch", after=[flow]),
        "after[0]: is a flow, not a job: write after=flow.jobs, or `await flow.wait()` before",
    ),
}


@pytest.mark.parametrize("form", ADDED)
async def test_wrong_job_of_a_flow_is_refused_with_the_right_form(form: str) -> None:
    add, message = ADDED[form]
    with pytest.raises(InvalidInput, match=re.escape(message)):
        async with lw.flow("nightly") as flow:
            add(flow)


async def test_dict_may_be_the_argument_of_a_handler() -> None:
    assert store.job({"row": 1}).payload == {"row": {"row": 1}}


async def test_wrong_submit_is_refused_with_the_right_form() -> None:
    any_lw: Any = lw
    with pytest.raises(InvalidInput, match=r"^job_type: is a handler: write fetch\.submit\("):
        await any_lw.submit(fetch, n=1)
    with pytest.raises(InvalidInput, match=r"^n: is not an option of submit: give an argument"):
        await any_lw.submit("fetch", n=1)
    with pytest.raises(InvalidInput, match=r"^payload: fetch takes its arguments by name"):
        await handler.submit({"n": 1})
    with pytest.raises(AttributeError, match=r"write fetch\.job\("):
        handler.s(n=1)


async def test_job_after_a_flow_is_refused(client: Client) -> None:
    with pytest.raises(InvalidInput, match=r"^jobs\[0\].after\[1\]: is a flow, not a job"):
        await client.submit_many([("fetch", {}, {"after": [uuid4(), client.flow("nightly")]})])


async def test_object_of_a_user_with_an_id_and_jobs_is_a_parent() -> None:
    class Row:
        id = uuid4()
        jobs = ()

    assert parent_ids([Row()]) == (Row.id,)


async def test_delivery_is_refused_before_its_payload_is_checked() -> None:
    rule = "job_type: only the end of a job submits deliveries"
    with pytest.raises(InvalidInput, match=f"^{rule}"):
        await lw.submit("laneway.webhook", {})
    with pytest.raises(InvalidInput, match=rf"^jobs\[0\].{rule}"):
        async with lw.flow("nightly") as flow:
            flow.add("laneway.webhook", {})


@pytest.mark.parametrize(
    "jobs, message",
    [
        ([5], "jobs[0]: must be a mapping, as in {"),
        (["x"], "jobs[0]: must be a mapping, as in {"),
        ("x", "jobs: must be a list of mappings, as in [{"),
        ({"job_type": "x"}, "jobs: must be a list of mappings"),
        (5, "jobs: must be a list of mappings"),
    ],
)
def test_http_flow_of_wrong_jobs_names_the_field(jobs: Any, message: str) -> None:
    with (
        HttpClient("http://127.0.0.1:1", "t") as client,
        pytest.raises(InvalidInput, match=re.escape(message)),
    ):
        client.submit_flow("bad", jobs)
