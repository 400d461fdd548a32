"""Backoff grows, is jittered over half its width, is bounded, and outlasts an outage."""

from hypothesis import given
from hypothesis import strategies as st

from libs.eventbus import RetryPolicy
from libs.eventbus.retrying import backoff_s

POLICY = RetryPolicy(base_delay_s=0.5, max_delay_s=60.0)


@given(st.integers(1, 10_000))
def test_a_delay_stays_within_its_ceiling(attempt: int) -> None:
    ceiling_s = min(60.0, 0.5 * 2 ** min(attempt - 1, 32))
    assert ceiling_s / 2 <= backoff_s(POLICY, attempt) <= ceiling_s


def test_delays_spread_over_the_upper_half() -> None:
    delays = [backoff_s(POLICY, 5) for _ in range(2_000)]
    assert min(delays) < 4.2
    assert max(delays) > 7.8


def test_an_outage_of_minutes_does_not_use_up_the_tries() -> None:
    policy = RetryPolicy()
    for _ in range(100):
        waited_s = sum(backoff_s(policy, attempt) for attempt in range(1, policy.max_attempts))
        assert waited_s > 180
