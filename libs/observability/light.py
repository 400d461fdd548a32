"""Metrics for a runtime's inner loop: plain numbers, read when Prometheus asks.

They are written from one thread, the event loop's, so they need no lock; prometheus_client's own
cost more than the work of a quick message. To a scrape they look the same.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString


class LightCount:
    """One counter of a `LightCounter`."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def inc(self) -> None:
        self.value += 1


class LightCounter(Collector):
    """A counter with labels."""

    def __init__(
        self,
        name: str,
        documentation: str,
        labels: Sequence[str],
        registry: CollectorRegistry = REGISTRY,
    ) -> None:
        """`name` ends in `_total`."""
        self._about = (name, documentation)
        self._labels = labels
        self._counts: dict[tuple[str, ...], LightCount] = {}
        registry.register(self)

    def labels(self, *values: str) -> LightCount:
        """The counter of these label values; keep it, looking it up costs more than counting."""
        return self._counts.setdefault(values, LightCount())

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(*self._about, labels=self._labels)
        for values, count in list(self._counts.items()):
            family.add_metric(values, count.value)
        yield family


class LightDistribution:
    """One histogram of a `LightHistogram`."""

    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self._bounds, value)] += 1
        self.total += value


class LightHistogram(Collector):
    """A histogram with labels; `buckets` are upper bounds, ascending, without infinity."""

    def __init__(
        self,
        name: str,
        documentation: str,
        labels: Sequence[str],
        buckets: Sequence[float],
        registry: CollectorRegistry = REGISTRY,
    ) -> None:
        self._about = (name, documentation)
        self._labels = labels
        self._buckets = buckets
        self._bounds = [*map(floatToGoString, buckets), "+Inf"]
        self._distributions: dict[tuple[str, ...], LightDistribution] = {}
        registry.register(self)

    def labels(self, *values: str) -> LightDistribution:
        """The histogram of these label values."""
        return self._distributions.setdefault(values, LightDistribution(self._buckets))

    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily(*self._about, labels=self._labels)
        for values, distribution in list(self._distributions.items()):
            reached, buckets = 0, []
            for bound, count in zip(self._bounds, distribution.counts, strict=True):
                reached += count
                buckets.append((bound, reached))
            family.add_metric(values, buckets, distribution.total)
        yield family
