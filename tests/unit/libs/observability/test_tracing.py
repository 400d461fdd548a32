import asyncio
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from libs.observability import tracing
from libs.observability.tracing import TraceContext

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    tracing.configure_tracing("parser", SimpleSpanProcessor(exporter), sample_ratio=1.0)
    yield exporter
    tracing.reset_tracing()


@pytest.mark.parametrize(("flags", "sampled"), [("00", False), ("01", True), ("03", True)])
def test_a_header_is_read_and_written(flags: str, sampled: bool) -> None:
    context = tracing.parse(f"00-{TRACE}-{SPAN}-{flags}")
    assert context == TraceContext(TRACE, SPAN, sampled)
    assert tracing.to_header(context) == f"00-{TRACE}-{SPAN}-0{int(sampled)}"


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "nonsense",
        f"00-{TRACE}-{SPAN}",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01\n",
    ],
)
def test_a_malformed_header_is_none(header: str | None) -> None:
    assert tracing.parse(header) is None


def test_a_later_version_with_more_fields_is_read() -> None:
    assert tracing.parse(f"01-{TRACE}-{SPAN}-01-more") == TraceContext(TRACE, SPAN, True)


def test_a_context_holds_within_its_step_and_not_after() -> None:
    assert tracing.current() is None
    with tracing.span("outer", TraceContext(TRACE, SPAN)):
        assert tracing.current() == TraceContext(TRACE, SPAN)
    assert tracing.current() is None


async def test_concurrent_tasks_keep_their_own_contexts() -> None:
    both = asyncio.Barrier(2)

    async def work() -> str:
        with tracing.span("work", tracing.new()) as context:
            await both.wait()
            assert tracing.current() == context
            return context.trace_id

    one, other = await asyncio.gather(work(), work())
    assert one != other


def test_nothing_is_sampled_until_somebody_records() -> None:
    assert not tracing.new().sampled


def test_sampled_steps_are_recorded_as_one_trace(spans: InMemorySpanExporter) -> None:
    with (
        tracing.span("outer", TraceContext(TRACE, SPAN, sampled=True), topic="a") as outer,
        tracing.span("inner"),
    ):
        assert tracing.current() != outer
    inner_span, outer_span = spans.get_finished_spans()
    assert (inner_span.name, outer_span.name) == ("inner", "outer")
    assert {f"{span.context.trace_id:032x}" for span in (inner_span, outer_span)} == {TRACE}
    assert outer_span.parent is not None
    assert f"{outer_span.parent.span_id:016x}" == SPAN
    assert inner_span.parent is not None
    assert inner_span.parent.span_id == outer_span.context.span_id
    assert dict(outer_span.attributes or {}) == {"topic": "a"}
    assert outer_span.resource.attributes["service.name"] == "parser"


def test_an_unsampled_trace_records_nothing(spans: InMemorySpanExporter) -> None:
    with tracing.span("outer", TraceContext(TRACE, SPAN, sampled=False)):
        pass
    assert spans.get_finished_spans() == ()


def test_a_failed_step_is_recorded_as_failed_and_the_error_goes_on(
    spans: InMemorySpanExporter,
) -> None:
    with pytest.raises(ValueError, match="broken"), tracing.span("step"):
        raise ValueError("broken")
    (span,) = spans.get_finished_spans()
    assert not span.status.is_ok


@pytest.mark.parametrize(("ratio", "expected"), [(0.0, {False}), (1.0, {True})])
def test_new_traces_are_sampled_by_the_share_asked_for(ratio: float, expected: set[bool]) -> None:
    tracing.configure_tracing("x", SimpleSpanProcessor(InMemorySpanExporter()), sample_ratio=ratio)
    try:
        assert {tracing.new().sampled for _ in range(50)} == expected
    finally:
        tracing.reset_tracing()
