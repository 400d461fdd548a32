"""Spans to a collector that speaks OTLP."""

from collections.abc import Iterator
from contextlib import contextmanager

from libs.observability.tracing import configure_tracing, reset_tracing


@contextmanager
def exporting(endpoint: str | None, service: str, sample_ratio: float) -> Iterator[None]:
    """Within the block, spans of sampled traces go to `endpoint`; None: nowhere.

    They are sent in batches by a thread of its own; when the collector is away they are dropped
    after some tries, and nothing waits for them but the end of the block, for some seconds.
    Headers, certificates and the like are the exporter's own variables (`OTEL_EXPORTER_OTLP_…`).

    Args:
        endpoint: An OTLP receiver's address for HTTP, without the path: `http://collector:4318`.
        sample_ratio: Share of the traces that begin here.
    """
    if not endpoint:
        yield
        return
    # Only who exports pays for loading them.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    exporter = OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces", timeout=2)
    processor = BatchSpanProcessor(exporter, schedule_delay_millis=1_000)
    configure_tracing(service, processor, sample_ratio=sample_ratio)
    try:
        yield
    finally:
        reset_tracing()
        processor.force_flush(1_000)
        processor.shutdown()  # type: ignore[no-untyped-call]
