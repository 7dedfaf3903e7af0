"""When a worker counts as silent: before its lease is over, never after."""

from __future__ import annotations

from uuid import uuid4

import pytest

from laneway.domain.claim import Claim
from laneway.rpc.server import liveness as module
from laneway.rpc.server.liveness import Liveness

ONE, OTHER = Claim(1, uuid4(), 1), Claim(2, uuid4(), 1)


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def silence(clock: Clock) -> Liveness:
    silence = Liveness()
    silence.hold([ONE], 4.0, begun=clock.now)
    clock.now += 3.9
    assert not silence.is_silent
    clock.now += 0.2
    assert silence.is_silent
    return silence


def test_any_message_ends_silence(silence: Liveness) -> None:
    assert silence.note_call()
    assert not silence.is_silent


def test_renewal_elsewhere_ends_it_for_as_long_as_the_lease_lasts(
    silence: Liveness, clock: Clock
) -> None:
    assert silence.renewed_elsewhere({ONE: clock.now + 3.0})
    clock.now += 2.9
    assert not silence.is_silent
    clock.now += 0.2
    assert silence.is_silent


def test_expiring_lease_is_not_a_sign_of_life(silence: Liveness, clock: Clock) -> None:
    silence.renewed_elsewhere({ONE: clock.now + 0.01})
    clock.now += 0.02
    assert silence.is_silent


def test_lease_that_is_over_changes_nothing(silence: Liveness, clock: Clock) -> None:
    assert not silence.renewed_elsewhere({ONE: clock.now - 1.0})
    assert silence.is_silent


def test_worker_that_holds_nothing_is_not_silent(clock: Clock) -> None:
    silence = Liveness()
    silence.hold([ONE], 4.0, begun=clock.now)
    silence.ended(ONE)
    clock.now += 60
    assert not silence.is_silent


def lapsed_again_and_again(silence: Liveness, clock: Clock, times: int) -> list[int]:
    """The lengths of its silences."""
    lasted = []
    for _ in range(times):
        silence.ended(ONE)
        began = clock.now
        while silence.is_silent:
            clock.now += 1.0
        lasted.append(round(clock.now - began))
        silence.hold([ONE], 4.0, begun=clock.now)
        assert not silence.is_silent
        clock.now += 4.1
    return lasted


def test_worker_that_called_and_lets_jobs_lapse_gets_them_less_often(
    silence: Liveness, clock: Clock
) -> None:
    silence.note_call()
    silence.renewed([ONE], asked_at=clock.now)
    clock.now += 4.1
    lasted = lapsed_again_and_again(silence, clock, 8)
    assert lasted == [20, 40, 80, 160, 320, 640, 640, 640]
    assert silence.renewed_elsewhere({ONE: clock.now + 1.0})
    clock.now += 1.1
    assert lapsed_again_and_again(silence, clock, 2) == [20, 40]
    silence.note_call()
    silence.renewed([ONE], asked_at=clock.now)
    clock.now += 4.1
    assert lapsed_again_and_again(silence, clock, 1) == [20]


def test_silence_of_worker_that_calls_elsewhere_does_not_grow(
    silence: Liveness, clock: Clock
) -> None:
    assert lapsed_again_and_again(silence, clock, 3) == [20, 20, 20]


def test_message_about_one_job_does_not_renew_another(clock: Clock) -> None:
    silence = Liveness()
    silence.hold([ONE, OTHER], 4.0, begun=clock.now)
    clock.now += 2.0
    silence.note_call()
    silence.renewed([ONE], asked_at=clock.now)
    clock.now += 2.1
    assert silence.is_silent, "the other job has lapsed, and would be sent to the same worker"
    silence.ended(OTHER)
    assert silence.is_silent, "a reclaimed lease is not a sign of life"


def test_message_after_lapse_counts_until_next_lease_end(clock: Clock) -> None:
    silence = Liveness()
    silence.hold([ONE, OTHER], 4.0, begun=clock.now)
    clock.now += 2.0
    silence.renewed([ONE], asked_at=clock.now)
    clock.now += 2.1
    assert silence.note_call()
    clock.now += 1.8
    assert not silence.is_silent
    clock.now += 0.2
    assert silence.is_silent


def test_worker_that_renews_each_of_its_jobs_in_turn_is_not_silent(clock: Clock) -> None:
    silence = Liveness()
    silence.hold([ONE, OTHER], 4.0, begun=clock.now)
    for claim in [ONE, OTHER] * 5:
        clock.now += 1.9
        assert not silence.is_silent
        silence.note_call()
        silence.renewed([claim], asked_at=clock.now)


def test_job_that_ends_in_time_is_not_waited_for(clock: Clock) -> None:
    silence = Liveness()
    silence.hold([ONE], 4.0, begun=clock.now)
    clock.now += 2.0
    silence.hold([OTHER], 4.0, begun=clock.now)
    silence.ended(ONE)
    clock.now += 3.9
    assert not silence.is_silent
    clock.now += 0.2
    assert silence.is_silent


def test_lease_that_lasts_does_not_end_the_silence_for_another(clock: Clock) -> None:
    silence = Liveness()
    silence.hold([ONE, OTHER], 4.0, begun=clock.now)
    clock.now += 2.0
    renewed_until = clock.now + 4.0
    clock.now += 2.1
    silence.ended(OTHER)
    assert not silence.renewed_elsewhere({ONE: renewed_until})
    assert silence.is_silent, "it was renewed before the other lapsed"
    assert silence.renewed_elsewhere({ONE: clock.now + 4.0})
    assert not silence.is_silent


def test_late_renewal_ends_the_silence_where_nothing_lapsed(clock: Clock) -> None:
    silence = Liveness()
    silence.hold([ONE], 4.0, begun=clock.now)
    clock.now += 3.9
    silence.note_call()
    asked_at = clock.now
    clock.now += 0.2
    assert silence.is_silent
    silence.renewed([ONE], asked_at)
    assert not silence.is_silent
    clock.now += 3.9
    assert silence.is_silent


def test_lease_that_ended_before_the_stream_began_is_not_waited_for(clock: Clock) -> None:
    silence = Liveness()
    silence.hold([ONE], 4.0, begun=clock.now - 5.0)
    assert not silence.is_silent
    silence.renewed([ONE], asked_at=clock.now)
    clock.now += 4.1
    assert silence.is_silent
