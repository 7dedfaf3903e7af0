"""A parser of server-sent events that accepts chunks cut anywhere."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import Final, NamedTuple

from laneway.errors import ServerError

# The largest line or event: a job's payload and result with room to spare.
LONGEST: Final = 64 * 1024 * 1024


class SseMessage(NamedTuple):
    """One event; `id` is the newest id so far, from this event or an earlier one."""

    id: str | None
    event: str
    data: str


class Parser:
    """Parse bytes into messages.

    `last_id` and `retry_ms` are the newest of the stream; `is_alive` is true after the first byte.
    """

    def __init__(self, last_id: str | None = None) -> None:
        self.last_id = last_id
        self._id = last_id
        self.retry_ms: int | None = None
        self.is_alive = False
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._text = ""
        self._is_first = True
        self._event = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[SseMessage]:
        """Yield the messages that these bytes complete."""
        self.is_alive = self.is_alive or bool(chunk)
        self._text += self._decode(chunk)
        if self._is_first and self._text:
            self._text = self._text.removeprefix("\ufeff")
            self._is_first = False
        for line in self._lines():
            message = self._parse_line(line)
            if message is not None:
                yield message

    def _lines(self) -> Iterator[str]:
        start = 0
        text = self._text
        while True:
            end, after = _line_end(text, start)
            if end is None:
                break
            yield text[start:end]
            start = after
        self._text = text[start:]
        if len(self._text) > LONGEST:
            raise ServerError("the stream sent a line that is too long")

    def _parse_line(self, line: str) -> SseMessage | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._size += len(value)
            if self._size > LONGEST:
                raise ServerError("the stream sent an event that is too large")
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry_ms = min(int(value[:9]), 60_000)
        return None

    def _dispatch(self) -> SseMessage | None:
        # Not earlier: an event that was cut off must be sent again.
        self.last_id = self._id
        event, data = self._event, self._data
        self._event, self._data, self._size = "", [], 0
        if not data:
            return None
        return SseMessage(self.last_id, event or "message", "\n".join(data))


def _line_end(text: str, start: int) -> tuple[int | None, int]:
    """The end of a line and the start of the next; None if more bytes are needed."""
    feed, back = text.find("\n", start), text.find("\r", start)
    if back == -1 or (feed != -1 and feed < back):
        return (None, 0) if feed == -1 else (feed, feed + 1)
    if back + 1 == len(text):
        # A line feed may follow with the next bytes.
        return None, 0
    return back, back + 2 if text[back + 1] == "\n" else back + 1
