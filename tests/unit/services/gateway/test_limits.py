"""The token bucket per key."""

import pytest

from libs.web import ProblemError
from services.gateway.limits import RateLimit, check_length


def test_a_burst_is_allowed_and_then_one_token_at_a_time() -> None:
    now = 100.0
    rate = RateLimit(6, clock=lambda: now)
    assert [rate.wait_s("k") for _ in range(6)] == [0.0] * 6
    assert rate.wait_s("k") == pytest.approx(10.0)
    assert rate.wait_s("other") == 0.0
    now += 10.0
    assert rate.wait_s("k") == 0.0
    assert rate.wait_s("k") == pytest.approx(10.0)
    now += 1_000.0
    assert [rate.wait_s("k") for _ in range(7)][:6] == [0.0] * 6


def test_zero_is_no_limit() -> None:
    rate = RateLimit(0)
    assert {rate.wait_s("k") for _ in range(1_000)} == {0.0}
    check_length("x" * 100_000, 0)


def test_the_longest_question_is_still_allowed() -> None:
    check_length("长" * 10, 10)
    with pytest.raises(ProblemError, match="Shorten") as caught:
        check_length("长" * 11, 10)
    assert caught.value.status_code == 413
