"""Backoff grows, is jittered over its whole width and is bounded."""

from hypothesis import given
from hypothesis import strategies as st

from libs.eventbus import RetryPolicy
from libs.eventbus.retrying import backoff_s

POLICY = RetryPolicy(base_delay_s=0.5, max_delay_s=60.0)


@given(st.integers(1, 10_000))
def test_a_delay_stays_within_its_ceiling(attempt: int) -> None:
    assert 0 <= backoff_s(POLICY, attempt) <= min(60.0, 0.5 * 2 ** min(attempt - 1, 32))


def test_delays_spread_over_the_whole_width() -> None:
    delays = [backoff_s(POLICY, 5) for _ in range(2_000)]
    assert min(delays) < 0.8
    assert max(delays) > 7.2
