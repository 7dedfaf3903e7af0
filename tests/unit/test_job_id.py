"""Laws of job ids cut to a prefix."""

from __future__ import annotations

from uuid import UUID

import pytest

from laneway.domain.job import JobIds, new_job_ids
from laneway.domain.job_id import IdMatches, IdPrefix, only_match, parse_id, shortened
from laneway.errors import InvalidInput

ONE = UUID("019a93c4-1234-7abc-8def-0123456789ab")


@pytest.mark.parametrize("text", [str(ONE), ONE.hex, str(ONE).upper(), f" {ONE} "])
def test_full_id_is_read_in_every_form(text: str) -> None:
    assert parse_id(text) == ONE


@pytest.mark.parametrize("text", ["019a93c4-12", "019A93C412", "019a-93c4-12", "019a93c4-12-"])
def test_prefix_is_read_with_and_without_hyphens(text: str) -> None:
    prefix = parse_id(text)
    assert isinstance(prefix, IdPrefix)
    assert prefix == IdPrefix("019a93c412")
    assert str(prefix) == "019a93c4-12"
    assert prefix.range.first <= ONE <= prefix.range.last
    assert not prefix.range.first <= UUID(int=ONE.int ^ 1 << 127) <= prefix.range.last


@pytest.mark.parametrize(
    "text", ["019a93c4-1234…6789ab", "019a93c41234..6789AB", "019a93c4-1234...6789ab"]
)
def test_prefix_may_be_followed_by_the_end_of_the_id(text: str) -> None:
    assert parse_id(text) == IdPrefix("019a93c41234", "6789ab")


@pytest.mark.parametrize(
    "text, rule",
    [
        ("019a…", "hexadecimal"),
        ("…6789ab", "at least 4 digits"),
        (f"{ONE}…ab", "hexadecimal"),
        ("", "hexadecimal"),
        ("greet", "hexadecimal"),
        ("019", "at least 4 digits"),
        (f"{ONE}0", "hexadecimal"),
        ("٠١٩٠٠", "hexadecimal"),
    ],
)
def test_other_text_is_refused_with_the_rule(text: str, rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        parse_id(text)


def test_ids_of_other_milliseconds_differ_within_twelve_digits() -> None:
    earlier, later = (UUID(int=JobIds(millis, 0).next()) for millis in (2**47, 2**47 + 1))
    assert earlier.hex[:12] != later.hex[:12]


def test_shortest_prefix_is_unique_among_the_jobs_of_its_millisecond() -> None:
    alone, *batch = new_job_ids(4)
    many = IdMatches(alone.hex[:12], (alone,), is_more=False)
    together = IdMatches(batch[0].hex[:12], tuple(batch), is_more=False)
    short = shortened({alone: many, **dict.fromkeys(batch, together)})
    assert short[alone] == str(alone)[:13]
    assert len(set(short.values())) == 4
    for job_id in batch:
        assert [str(each) for each in batch if str(each).startswith(short[job_id])] == [str(job_id)]


def test_id_of_a_crowded_millisecond_is_shown_in_full() -> None:
    assert shortened({ONE: IdMatches("019a", (ONE,), is_more=True)}) == {ONE: str(ONE)}


def test_only_a_single_match_is_the_job() -> None:
    assert IdMatches("019a", (ONE,), is_more=False).only == ONE
    assert IdMatches("019a", (ONE,), is_more=True).only is None
    assert IdMatches("019a", (), is_more=False).only is None


@pytest.mark.parametrize("ids", [(), (ONE,)])
def test_match_among_jobs_not_all_examined_is_not_called_ambiguous(ids: tuple[UUID, ...]) -> None:
    given = IdPrefix("019a93c41234", "6789ab")
    with pytest.raises(InvalidInput, match="not all were examined") as refused:
        only_match(given, IdMatches(str(given), ids, is_more=True))
    assert "several" not in str(refused.value)
    with pytest.raises(InvalidInput, match="several job ids begin with 019a93c4-1234…6789ab"):
        only_match(given, IdMatches(str(given), (ONE, UUID(int=1)), is_more=True))
