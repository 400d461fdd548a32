"""Light metrics look to a scrape as prometheus_client's own do."""

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from libs.observability.light import LightCounter, LightHistogram

BUCKETS = (0.1, 1.0, 2.5)


def lines(registry: CollectorRegistry) -> list[str]:
    text = generate_latest(registry).decode().splitlines()
    return sorted(line for line in text if "_created" not in line)


def test_a_light_counter_is_exposed_like_a_counter() -> None:
    light, known = CollectorRegistry(), CollectorRegistry()
    ours = LightCounter("seen_total", "Seen", ["group"], light)
    theirs = Counter("seen_total", "Seen", ["group"], registry=known)
    for group in ("a", "b", "a"):
        ours.labels(group).inc()
        theirs.labels(group).inc()
    assert lines(light) == lines(known)


def test_a_light_histogram_is_exposed_like_a_histogram() -> None:
    light, known = CollectorRegistry(), CollectorRegistry()
    ours = LightHistogram("took_seconds", "Took", ["group"], BUCKETS, light)
    theirs = Histogram("took_seconds", "Took", ["group"], buckets=BUCKETS, registry=known)
    for seconds in (0.05, 0.1, 0.5, 2.5, 9.0):
        ours.labels("a").observe(seconds)
        theirs.labels("a").observe(seconds)
    assert lines(light) == lines(known)
