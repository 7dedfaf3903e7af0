"""A wrong declaration is refused at import, with the file, the line and the cure."""

from __future__ import annotations

import functools
import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar, Union

import pytest

from laneway import Context, Laneway, SyncContext
from laneway.engine.registry import Registry, make_handler
from laneway.errors import ConfigError, InvalidInput

if TYPE_CHECKING:
    from laneway import Context as OnlyForCheckers

HEAD = "from laneway import Analysis, Context, Laneway, SyncContext\nlw = Laneway()\n\n"
INGEST = '@lw.handler("ingestion")\nasync def ingest(ctx: Context, path: str) -> None: ...\n\n'


def refusal(directory: Path, source: str) -> str:
    """The error of importing an application whose declarations start in line 4."""
    path = directory / "app.py"
    path.write_text(HEAD + source)
    with pytest.raises(ConfigError) as error:
        runpy.run_path(str(path))
    return str(error.value)


@pytest.fixture(autouse=True)
def _in_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


HANDLERS = {
    "no_parentheses": (
        "@lw.handler\nasync def ingest(ctx: Context) -> None: ...",
        (
            'app.py:4, in ingest: @lw.handler needs parentheses: write @lw.handler("ingest"),'
            " with the job type"
        ),
    ),
    "unknown_option": (
        '@lw.handler("ingestion", max_retry=3)\nasync def ingest(ctx: Context) -> None: ...',
        (
            "app.py:4, in ingest: handler 'ingestion': max_retry: is not an option of @lw.handler;"
            " did you mean max_retries?"
        ),
    ),
    "strange_option": (
        '@lw.handler("ingestion", colour="red")\nasync def ingest(ctx: Context) -> None: ...',
        "colour: is not an option of @lw.handler; use one of approval, isolation, lane, limits,",
    ),
    "wrong_value": (
        '@lw.handler("ingestion", timeout=0)\nasync def ingest(ctx: Context) -> None: ...',
        "app.py:4, in ingest: handler 'ingestion': timeout: must be",
    ),
    "no_parameter": (
        '@lw.handler("ingestion")\nasync def ingest() -> None: ...',
        (
            "app.py:4, in ingest: handler 'ingestion': ctx: the first parameter, the context, is"
            " missing: write async def ingest(ctx: Context)"
        ),
    ),
    "only_keywords": (
        '@lw.handler("ingestion")\ndef ingest(*, path: str) -> None: ...',
        "the context, is missing: write def ingest(ctx: SyncContext, *, path: str)",
    ),
    "argument_first": (
        '@lw.handler("ingestion")\nasync def ingest(path: str, pages: int = 3) -> None: ...',
        (
            "app.py:4, in ingest: handler 'ingestion': path: is not a context, which is the first"
            " parameter: write async def ingest(ctx: Context, path: str, pages: int)"
        ),
    ),
    "argument_without_hint": (
        '@lw.handler("ingestion")\nasync def ingest(path, ctx): ...',
        (
            "path: is not a context, which is the first parameter: write async def ingest(ctx:"
            " Context, path"
        ),
    ),
    "context_of_another_type": (
        '@lw.handler("ingestion")\nasync def ingest(ctx: dict[str, int], **rest: int) -> None: ...',
        (
            "ctx: is not a context, which is the first parameter: write async def ingest(ctx:"
            " Context, **rest: int)"
        ),
    ),
    "sync_context_of_async_def": (
        '@lw.handler("ingestion")\nasync def ingest(ctx: SyncContext, path: str) -> None: ...',
        (
            "app.py:4, in ingest: handler 'ingestion': ctx: is a SyncContext, but an async def gets"
            " the other: write async def ingest(ctx: Context, path: str)"
        ),
    ),
    "context_of_plain_def": (
        '@lw.handler("ingestion")\ndef ingest(ctx: Context, path: str) -> None: ...',
        (
            "app.py:4, in ingest: handler 'ingestion': ctx: is a Context, but a plain def gets the"
            " other: write def ingest(ctx: SyncContext, path: str)"
        ),
    ),
    "empty_parentheses": (
        "@lw.handler()\nasync def ingest(ctx: Context) -> None: ...",
        'app.py:4: @lw.handler needs the job type: write @lw.handler("ingest")',
    ),
    "retry_function": (
        (
            '@lw.handler("ingestion", retry=lambda error: 1)\n'
            "async def ingest(ctx: Context) -> None: ..."
        ),
        (
            "app.py:4, in ingest: handler 'ingestion': retry: must take the number of the retry and"
            " the error: write def retry(n, error)"
        ),
    ),
    "method": (
        'class Jobs:\n    @lw.handler("ingestion")\n    async def ingest(self, ctx): ...',
        (
            "app.py:5, in ingest: handler 'ingestion': self: is not passed to a handler: register a"
            " function, or a bound method"
        ),
    ),
    "lambda": (
        'lw.handler("ingestion")(lambda path: path)',
        "path: is not a context, which is the first parameter: write ctx: SyncContext",
    ),
    "default": (
        '@lw.handler("ingestion")\nasync def ingest(ctx: Context, x: object = print) -> None: ...',
        (
            "app.py:4, in ingest: handler 'ingestion': ingest(x): its default <built-in function"
            " print> has no JSON form: use None, and replace it in the handler"
        ),
    ),
    "generator": (
        '@lw.handler("ingestion")\nasync def ingest(ctx: Context):\n    yield 1',
        "ingest: yields: a handler returns its result; report progress with ctx.progress",
    ),
    "class": (
        '@lw.handler("ingestion")\nclass Ingest:\n    pass',
        "app.py:4, in Ingest: handler 'ingestion': Ingest: is a class: a handler is a function",
    ),
    "no_function": ('lw.handler("ingestion")(7)', "int: cannot be called: a handler is a function"),
    "second_handler": (
        INGEST + '@lw.handler("ingestion")\nasync def other(ctx: Context) -> None: ...',
        "app.py:7, in other: handler 'ingestion': is already registered, at app.py:4, in ingest",
    ),
}

OTHERS = {
    "check_no_parentheses": (
        "@lw.check\ndef is_open() -> bool: ...",
        (
            'app.py:4, in is_open: @lw.check needs parentheses: write @lw.check("is_open"), with'
            " the name that schedules use"
        ),
    ),
    "check_option": (
        '@lw.check("open", timout=3)\ndef is_open() -> bool: ...',
        (
            "app.py:4, in is_open: check 'open': timout: is not an option of @lw.check; did you"
            " mean timeout?"
        ),
    ),
    "check_parameters": (
        '@lw.check("open")\ndef is_open(a, b) -> bool: ...',
        (
            "app.py:4, in is_open: check 'open': function: must take no argument, or only the"
            " resources"
        ),
    ),
    "schedule_no_parentheses": (
        f"@lw.schedule\n{INGEST}",
        (
            "app.py:4, in ingest: @lw.schedule needs parentheses: write"
            ' @lw.schedule("nightly", cron="0 3 * * *"), with a name and a time'
        ),
    ),
    "schedule_option": (
        f'@lw.schedule("nightly", crom="0 3 * * *")\n{INGEST}',
        (
            "app.py:4, in ingest: schedule 'nightly': crom: is not an option of @lw.schedule; did"
            " you mean cron?"
        ),
    ),
    "schedule_value": (
        '\nlw.schedule("nightly", "ingestion", cron="soon")',
        "app.py:5: schedule 'nightly': cron:",
    ),
    "schedule_without_argument": (
        f'@lw.schedule("nightly", cron="0 3 * * *")\n{INGEST}',
        "app.py:4, in ingest: schedule 'nightly': payload.path: is required",
    ),
    "schedule_by_name_without_argument": (
        f'{INGEST}lw.schedule("nightly", "ingestion", cron="0 3 * * *", payload={{"path": 1}})',
        "app.py:7: schedule 'nightly': payload.path: must be",
    ),
    "limits_as_text": (
        '@lw.handler("ingestion", limits="openai")\nasync def ingest(ctx: Context): ...',
        "limits: must be a list of at most 100 names, not 'openai': write ['openai']",
    ),
    "schedule_below_handler": (
        (
            '@lw.handler("ingestion")\n@lw.schedule("nightly", cron="0 3 * * *")\n'
            "async def ingest(ctx: Context) -> None: ..."
        ),
        (
            "app.py:4, in ingest: schedule 'nightly': is below @lw.handler: write @lw.schedule"
            " above it"
        ),
    ),
    "schedule_twice": (
        'lw.schedule("n", "a", cron="@daily")\nlw.schedule("n", "b", cron="@daily")',
        "app.py:5: schedule 'n': is already registered",
    ),
    "hook_with_parentheses": (
        "@lw.on_start()\nasync def load(resources) -> None: ...",
        "app.py:4: @lw.on_start takes no parentheses: write @lw.on_start",
    ),
    "hook_without_resources": (
        "@lw.on_stop\nasync def unload() -> None: ...",
        (
            "app.py:4, in unload: @lw.on_stop: the function takes the resources and nothing else"
            " (too many positional arguments): write def unload(resources)"
        ),
    ),
    "middleware_with_parentheses": (
        "@lw.middleware()\nasync def around(ctx, call_next) -> None: ...",
        "app.py:4: @lw.middleware takes no parentheses: write @lw.middleware",
    ),
    "analysis_with_parentheses": (
        f"{INGEST}@ingest.analyze()\ndef plan(path: str) -> Analysis: ...",
        "app.py:7: @ingest.analyze takes no parentheses: write @ingest.analyze",
    ),
    "analysis_argument": (
        f"{INGEST}@ingest.analyze\ndef plan(pth: str) -> Analysis: ...",
        (
            "app.py:7, in plan: analysis of 'ingestion': its handler has no argument pth; did you"
            " mean path?"
        ),
    ),
    "lanes_by_name": (
        '\nLaneway(lanes=["docs"])',
        "app.py:5: Laneway(): lanes: must be a list of Lane, found str",
    ),
    "limits_by_name": (
        '\nLaneway(limits=["llm"])',
        "app.py:5: Laneway(): limits: must be a list of Limit, found str",
    ),
    "setting": (
        "\nLaneway(concurency=3)",
        "app.py:5: Laneway(): concurency: is not a setting; did you mean concurrency?",
    ),
}


@pytest.mark.parametrize("name", HANDLERS)
def test_wrong_handler_is_refused_at_import_with_line_and_cure(tmp_path: Path, name: str) -> None:
    source, message = HANDLERS[name]
    assert message in refusal(tmp_path, source)


@pytest.mark.parametrize("name", OTHERS)
def test_wrong_declaration_is_refused_at_import_with_its_line(tmp_path: Path, name: str) -> None:
    source, message = OTHERS[name]
    assert message in refusal(tmp_path, source)


def test_line_is_that_of_the_function_even_if_it_is_wrapped(tmp_path: Path) -> None:
    source = """
import functools

def traced(fn):
    @functools.wraps(fn)
    async def wrapped(*args, **kwargs):
        return await fn(*args, **kwargs)
    return wrapped

@lw.handler("ingestion", max_retry=3)
@traced
async def ingest(ctx: Context) -> None: ...
"""
    assert refusal(tmp_path, source).startswith("app.py:13, in ingest: ")


def test_file_outside_the_current_directory_is_named_in_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert refusal(tmp_path, HANDLERS["default"][0]).startswith(f"{tmp_path}/app.py:4, in ingest: ")


class Stand(Protocol):
    """A stand-in for contexts in a user's tests."""

    def log(self, text: str) -> None: ...


class OwnContext(Context):
    pass


T = TypeVar("T")


def test_context_may_be_declared_in_every_usual_way() -> None:
    def plain(ctx): ...  # type: ignore[no-untyped-def]
    def unused(_): ...  # type: ignore[no-untyped-def]
    def hidden(_ctx): ...  # type: ignore[no-untyped-def]
    def long(job_context): ...  # type: ignore[no-untyped-def]
    def typed(c: SyncContext) -> None: ...
    def for_checkers(c: OnlyForCheckers) -> None: ...
    def quoted(c: "SyncContext") -> None: ...  # noqa: UP037
    def either(c: Context | SyncContext) -> None: ...
    def optional(c: Union[SyncContext, None] = None) -> None: ...  # noqa: UP007
    def marked(c: Annotated[SyncContext, "mark"]) -> None: ...
    def anything(c: Any) -> None: ...
    def top(c: object) -> None: ...
    def generic(c: T) -> T:
        return c

    def own(c: OwnContext) -> None: ...
    def structural(c: Stand) -> None: ...
    def positional(c: SyncContext, /) -> None: ...

    class Jobs:
        def run(self, ctx: SyncContext) -> None: ...

    for fn in (plain, unused, hidden, long, typed, for_checkers, quoted, either, optional, marked,
               anything, top, generic, own, structural, positional, Jobs().run,
               functools.partial(plain), lambda ctx: ctx):  # fmt: skip
        assert make_handler("job", fn).job_type == "job"


async def test_function_may_handle_two_job_types() -> None:
    lw = Laneway()

    @lw.handler("first")
    @lw.handler("second")
    async def both(ctx: Context) -> int:
        return 1

    assert both.job_type == "first"
    assert [each.isolation for each in lw.handlers] == ["async", "async"]
    assert await both(object()) == 1


def test_hook_without_a_readable_signature_is_accepted() -> None:
    registry = Registry()
    registry.add_hook("on_start", min)
    assert registry.on_start == [min]


async def test_misspelt_option_of_a_submit_names_the_nearest() -> None:
    lw = Laneway()

    @lw.handler("ingestion")
    async def ingest(ctx: Context, path: str) -> None: ...

    rule = "priorty: is not an option of submit; did you mean priority"
    misspelt: Any = {"priorty": 3}
    for submit in (
        lambda: lw.submit("ingestion", {"path": "a"}, **misspelt),
        lambda: lw.prepare("ingestion", {"path": "a"}, **misspelt),
    ):
        with pytest.raises(InvalidInput, match=rule):
            await submit()
    with pytest.raises(InvalidInput, match=rule):
        ingest.options(**misspelt)
    entries: list[Any] = [
        ("ingestion", {"path": "a"}, misspelt),
        {"job_type": "ingestion", **misspelt},
    ]
    for entry in entries:
        with pytest.raises(
            InvalidInput, match=r"jobs\[0\]: 'priorty' is not an option of submit; d"
        ):
            await lw.submit_many([entry])


def test_options_of_other_queues_are_refused_with_ours() -> None:
    lw = Laneway()

    @lw.handler("ingestion")
    async def ingest(ctx: Context, path: str) -> None: ...

    foreign: Any = {"countdown": 3}
    with pytest.raises(InvalidInput, match=r"countdown: .* submit; did you mean delay\?"):
        ingest.options(**foreign)
    other: Any = {"queue": "docs"}
    with pytest.raises(ConfigError, match=r"queue: .* @lw\.handler; did you mean lane\?"):
        lw.handler("other", **other)(ingest)


def test_calls_of_other_queues_are_refused_with_ours() -> None:
    lw = Laneway()

    @lw.handler("ingestion")
    async def ingest(ctx: Context, path: str) -> None: ...

    foreign: Any = ingest
    with pytest.raises(AttributeError, match=r"'delay': write ingest\.submit\(…\)$"):
        foreign.delay(path="a")
    with pytest.raises(AttributeError, match=r"write ingest\.options\(…\)\.submit\(…\)$"):
        foreign.apply_async(path="a")
    assert not hasattr(foreign, "other")
    assert ingest.options(delay=3).job_type == "ingestion"
