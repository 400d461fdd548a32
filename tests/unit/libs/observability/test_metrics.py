"""Metric names keep Prometheus' conventions, and each definition says what it means."""

import re
from pathlib import Path

import pytest
from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.registry import Collector

from libs.observability import metrics
from libs.observability.light import LightCounter, LightHistogram

DEFINED = {
    name: value
    for name, value in vars(metrics).items()
    if isinstance(value, Counter | Gauge | Histogram | LightCounter | LightHistogram)
}


def exposed(metric: Collector) -> tuple[str, str]:
    (family,) = metric.collect()
    return family.name, family.type


def test_the_ones_that_alerts_and_panels_stand_on_are_there() -> None:
    names = {exposed(metric)[0] for metric in DEFINED.values()}
    assert {
        "eventbus_messages",  # a counter's `_total` belongs to its sample
        "eventbus_handler_seconds",
        "eventbus_lag",
        "eventbus_dead_letters",
        "outbox_pending",
        "documents",
        "turn_seconds",
        "retrieval_seconds",
        "model_calls",
        "citations_dropped",
        "workers_ready",
    } <= names


@pytest.mark.parametrize("name", DEFINED)
def test_a_name_is_snake_case_and_a_duration_is_in_seconds(name: str) -> None:
    exposed_name, kind = exposed(DEFINED[name])
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", exposed_name)
    assert not re.search(r"_(ms|millis|kb|mb|minutes)\b", exposed_name)
    assert kind != "histogram" or exposed_name.endswith("_seconds")


@pytest.mark.parametrize("name", DEFINED)
def test_a_definition_stands_under_a_comment(name: str) -> None:
    lines = Path(metrics.__file__).read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(f"{name} = "))
    assert lines[at - 1].startswith("# ")
