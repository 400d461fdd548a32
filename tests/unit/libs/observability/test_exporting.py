"""Spans reach a collector that speaks OTLP over HTTP."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from libs.observability import tracing
from libs.observability.exporting import exporting
from libs.web import new_app
from tests.servers.databases import sqlite

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Collector:
    """What an OTLP receiver is sent."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.services: set[str] = set()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.path == "/v1/traces"
                collector.take(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def take(self, body: bytes) -> None:
        for sent in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.services |= {
                each.value.string_value
                for each in sent.resource.attributes
                if each.key == "service.name"
            }
            self.spans += [span for scope in sent.scope_spans for span in scope.spans]


@pytest.fixture
def collector() -> Iterator[Collector]:
    found = Collector()
    thread = threading.Thread(target=found.server.serve_forever, daemon=True)
    thread.start()
    yield found
    found.server.shutdown()
    found.server.server_close()
    thread.join()


def test_what_ended_within_the_block_has_arrived_at_its_end(collector: Collector) -> None:
    with (
        exporting(collector.url, "parser", 1.0),
        tracing.span("outer") as outer,
        tracing.span("inner"),
    ):
        pass
    inner_sent, outer_sent = collector.spans
    assert (inner_sent.name, outer_sent.name) == ("inner", "outer")
    assert inner_sent.trace_id == outer_sent.trace_id == bytes.fromhex(outer.trace_id)
    assert inner_sent.parent_span_id == outer_sent.span_id
    assert collector.services == {"parser"}


def test_without_a_collector_nothing_is_recorded(collector: Collector) -> None:
    with exporting(None, "parser", 1.0), tracing.span("step") as context:
        assert not context.sampled
    with exporting(collector.url, "parser", 0.0), tracing.span("step"):
        pass
    assert collector.spans == []


def test_a_collector_that_is_away_is_nobodys_failure() -> None:
    with exporting("http://127.0.0.1:1", "parser", 1.0), tracing.span("step") as context:
        assert context.sampled


async def test_a_request_is_a_step_of_its_callers_trace(
    collector: Collector, tmp_path: Path
) -> None:
    async def nothing() -> list[str]:
        return []

    async with sqlite(tmp_path) as db:
        app = new_app("traced", db=db, missing=nothing)

        @app.get("/things/{name}")
        async def item(name: str) -> str:
            context = tracing.current()
            assert context is not None
            return f"{name} {context.trace_id}"

        transport = httpx.ASGITransport(app)
        with exporting(collector.url, "gateway", 0.0):
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
                header = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
                said = (await http.get("/things/a", headers=header)).json()
                await http.get("/things/b")  # not sampled
                await http.get("/ready", headers=header)
    assert said == f"a {TRACE}"
    (sent,) = collector.spans
    assert sent.name == "GET /things/{name}"
    assert (sent.trace_id.hex(), sent.parent_span_id.hex()) == (TRACE, SPAN)
    assert {each.key: each.value.int_value for each in sent.attributes} == {"status": 200}
