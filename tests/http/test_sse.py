"""The parser of server-sent events: any split of the bytes gives the same messages."""

from __future__ import annotations

import pytest

from laneway.errors import ServerError
from laneway.http.sse import Parser, SseMessage

STREAM = (
    "\ufeff: hello\r\n"
    "retry: 250\r\n"
    'id: 1\r\nevent: job.state\r\ndata: {"é":\r\ndata:  1}\r\n\r\n'
    ": ping\n\n"
    "event: nothing to tell\n\n"
    "id: 2\ndata\n\n"
    "data: kept id\runknown: x\r\r"
    "id: a\0b\ndata:no space\n\n"
    "id: 3\ndata: cut off"
).encode()
MESSAGES = [
    SseMessage("1", "job.state", '{"é":\n 1}'),
    SseMessage("2", "message", ""),
    SseMessage("2", "message", "kept id"),
    SseMessage("2", "message", "no space"),
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, len(STREAM)])
def test_messages_do_not_depend_on_how_the_bytes_are_cut(size: int) -> None:
    parser = Parser()
    found = [
        message
        for start in range(0, len(STREAM), size)
        for message in parser.feed(STREAM[start : start + size])
    ]
    assert found == MESSAGES
    assert parser.retry_ms == 250


def test_event_that_was_cut_off_comes_again() -> None:
    parser = Parser("0")
    list(parser.feed(STREAM))
    assert parser.last_id == "2"


def test_stream_without_data_is_not_alive() -> None:
    parser = Parser()
    assert list(parser.feed(b"")) == []
    assert not parser.is_alive
    assert list(parser.feed(b":\n")) == []
    assert parser.is_alive


def test_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laneway.http.sse.LONGEST", 10)
    with pytest.raises(ServerError, match="too long"):
        list(Parser().feed(b"data: 123456"))
    with pytest.raises(ServerError, match="too large"):
        list(Parser().feed(b"data: 12345\ndata: 67890\ndata: 1\n"))
