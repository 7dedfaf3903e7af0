"""Places in JSON that cannot be parsed."""

from __future__ import annotations

from laneway.domain.json_place import deep_path, top_value

# Each quote is escaped, so the string is never closed. A pattern that tries each of them again
# takes minutes for it.
UNCLOSED = '"\\' * 400_000


def test_deep_place_is_named_by_its_keys() -> None:
    text = r'{"a\"b": [[1, {"c": [[]]}]]}'
    assert deep_path(text, "payload", 4) == r'payload["a\\\"b"][0][1].c'


def test_unclosed_string_is_read_once() -> None:
    assert deep_path(UNCLOSED, "payload", 64) == "payload"
    assert top_value('{"a": ' + UNCLOSED, "id") is None
