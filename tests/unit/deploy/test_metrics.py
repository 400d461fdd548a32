"""Alert rules and the dashboard ask for metrics and labels that exist."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.metrics import MetricWrapperBase

from libs.observability import metrics
from libs.observability.light import LightCounter, LightHistogram
from tests.deploy.repository import OBSERVABILITY, read_yaml

# Of Prometheus itself, and of the client library on Linux.
OTHERS = {
    "up": {"job", "instance", "service"},
    "process_open_fds": {"job", "instance", "service"},
    "process_max_fds": {"job", "instance", "service"},
    "process_resident_memory_bytes": {"job", "instance", "service"},
}
_ENDINGS = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_count", "_sum"]}
_WORDS = {
    *("sum", "max", "by", "rate", "increase", "histogram_quantile", "and", "offset", "le"),
    *("m", "h", "for", "job", "__rate_interval"),
}


def known() -> dict[str, set[str]]:
    """Every series a process can show, with its labels."""
    found = dict(OTHERS)
    for metric in vars(metrics).values():
        if isinstance(metric, MetricWrapperBase):
            names, labels = metric.describe(), set(metric._labelnames)
        elif isinstance(metric, LightCounter | LightHistogram):
            names, labels = metric.collect(), set(metric._labels)
        else:
            continue
        for family in names:
            for ending in _ENDINGS[family.type]:
                found[family.name + ending] = labels | ({"le"} if ending == "_bucket" else set())
    return found


def expressions() -> Iterator[tuple[str, str]]:
    for group in read_yaml(OBSERVABILITY / "rules" / "sluice.yml")["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]
    dashboard = json.loads((OBSERVABILITY / "grafana" / "dashboards" / "sluice.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


def asked(expression: str) -> tuple[set[str], set[str]]:
    """The metrics and labels that a PromQL expression names."""
    labels = set(re.findall(r"([a-z_]+)\s*(?:=~|!=|!~|=)\s*\"", expression))
    for names in re.findall(r"by \(([^)]*)\)", expression):
        labels |= {name.strip() for name in names.split(",")}
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|by \([^)]*\)|\"[^\"]*\"", " ", expression)
    return set(re.findall(r"\b[a-z_]{2,}\b", bare)) - _WORDS, labels


@pytest.mark.parametrize(("title", "expression"), list(expressions()))
def test_what_is_asked_for_exists(title: str, expression: str) -> None:
    names, labels = asked(expression)
    series = known()
    assert names
    assert names <= set(series), f"{title}: no metric {names - set(series)}"
    of_them: set[str] = {"job", "instance", "service"}.union(*(series[name] for name in names))
    assert labels <= of_them, f"{title}: no label {labels - of_them}"


def test_a_metric_and_a_label_that_nobody_has_are_found() -> None:
    names, labels = asked('sum by (grup) (rate(eventbus_mesages_total{outcome="failed"}[5m]))')
    assert names - set(known()) == {"eventbus_mesages_total"}
    assert labels == {"grup", "outcome"}


def legends() -> Iterator[tuple[str, str, Any]]:
    dashboard = json.loads((OBSERVABILITY / "grafana" / "dashboards" / "sluice.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"], target["legendFormat"]


@pytest.mark.parametrize(("title", "expression", "legend"), list(legends()))
def test_legends_name_labels_that_the_panel_keeps(title: str, expression: str, legend: str) -> None:
    kept = {
        name.strip() for by in re.findall(r"by \(([^)]*)\)", expression) for name in by.split(",")
    }
    assert set(re.findall(r"{{(\w+)}}", legend)) <= kept, title
