from libs.models.breaker import CircuitBreaker


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_run_of_failures_opens_it_and_one_call_tries_again_after_the_pause() -> None:
    clock = Clock()
    breaker = CircuitBreaker(max_failures=2, pause_s=10.0, clock_s=clock)
    breaker.failed()
    assert breaker.allows()
    breaker.failed()
    assert not breaker.allows()
    clock.now = 10.0
    assert breaker.allows()
    assert not breaker.allows()
    breaker.failed()
    clock.now = 19.0
    assert not breaker.allows()
    clock.now = 20.0
    assert breaker.allows()
    breaker.succeeded()
    assert breaker.allows()
    assert breaker.allows()


def test_success_between_failures_starts_the_count_anew() -> None:
    breaker = CircuitBreaker(max_failures=2)
    for _ in range(5):
        breaker.failed()
        breaker.succeeded()
    assert breaker.allows()
