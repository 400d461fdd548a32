"""How long the steps of one search took."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from libs.observability import tracing
from libs.observability.metrics import RETRIEVAL_SECONDS


class Timings:
    """Seconds by step; a step that is repeated adds up. Goes into the metric as well."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def of(self, step: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            with tracing.span(f"search {step}"):
                yield
        finally:
            took = time.perf_counter() - started
            self.seconds[step] = self.seconds.get(step, 0.0) + took
            RETRIEVAL_SECONDS.labels(step).observe(took)
