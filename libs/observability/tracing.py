"""W3C trace context, carried by a context variable and by `traceparent` headers.

A context is three plain values, so a message that isn't sampled costs no OpenTelemetry call at all.
Spans are started only where the context is sampled and `configure_tracing` was given a processor
(`exporting` gives one to processes).
"""

import re
import secrets
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    StatusCode,
    TraceFlags,
    Tracer,
)

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")
_SAMPLED = frozenset(bytes([digit]) for digit in b"13579bdf")
_NOTHING = Context()
_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16


@dataclass(frozen=True, slots=True)
class TraceContext:
    """Where in which trace we are."""

    trace_id: str  # 32 lower-case hexadecimal digits
    span_id: str  # 16 of them
    sampled: bool = False


@dataclass(slots=True)
class _Tracing:
    tracer: Tracer | None = None
    sample_ratio: float = 0.0


_state = _Tracing()
# A header is kept as it came and parsed when somebody asks: most messages' never is.
_current: ContextVar[TraceContext | bytes | None] = ContextVar("trace_context", default=None)


def configure_tracing(service: str, processor: SpanProcessor, *, sample_ratio: float = 1.0) -> None:
    """Record spans of sampled traces through `processor`, and sample that share of new traces."""
    resource = Resource.create({"service.name": service})
    # Spans are started for sampled contexts only, so there is nothing left to decide.
    provider = TracerProvider(sampler=ALWAYS_ON, resource=resource)
    provider.add_span_processor(processor)
    _state.tracer = provider.get_tracer("sluice")
    _state.sample_ratio = sample_ratio


def reset_tracing() -> None:
    """Record no spans and sample no new traces: how a process starts."""
    _state.tracer, _state.sample_ratio = None, 0.0


def current() -> TraceContext | None:
    """The context of the message or request this task works on."""
    context = _current.get()
    if isinstance(context, bytes):
        context = parse(context.decode(errors="replace"))
        _current.set(context)
    return context


def new(*, sampled: bool | None = None) -> TraceContext:
    """The start of a new trace; sampled by the configured share unless told."""
    if sampled is None:
        ratio = _state.sample_ratio
        sampled = ratio > 0 and (secrets.randbelow(1_000_000) < ratio * 1_000_000)
    ids = secrets.token_hex(24)
    return TraceContext(ids[:32], ids[32:], sampled)


def parse(traceparent: str | None) -> TraceContext | None:
    """The context in a `traceparent` header; None for a missing or malformed one.

    Source: W3C Trace Context, level 1, section 3.2.
    """
    match = _TRACEPARENT.fullmatch(traceparent) if traceparent else None
    if match is None:
        return None
    trace_id, span_id, flags = match.groups()
    if trace_id == _NO_TRACE or span_id == _NO_SPAN:
        return None
    return TraceContext(trace_id, span_id, bool(int(flags, 16) & 1))


def to_header(context: TraceContext) -> str:
    """The context as a `traceparent` header."""
    return f"00-{context.trace_id}-{context.span_id}-{'01' if context.sampled else '00'}"


def enter_header(traceparent: bytes | None) -> bool:
    """Make a header as it came the current context for the rest of this task.

    The cheapest way, for runtimes. True if a span of it is to be recorded.
    """
    _current.set(traceparent)
    # The flags are the last of `00-<32 digits>-<16 digits>-<2 digits>`, their lowest bit counts.
    return _state.tracer is not None and traceparent is not None and traceparent[54:55] in _SAMPLED


class Step:
    """A step of a trace while it lasts; made by `span`. One object, entered once."""

    __slots__ = ("_attributes", "_name", "_parent", "_recorded", "_token")

    def __init__(
        self, name: str, parent: TraceContext | None, attributes: dict[str, str | int | float]
    ) -> None:
        self._name = name
        self._parent = parent
        self._attributes = attributes
        self._recorded: Span | None = None

    def __enter__(self) -> TraceContext:
        context = self._parent or current() or new()
        if context.sampled and _state.tracer is not None:
            parent = trace.set_span_in_context(_remote(context), _NOTHING)
            self._recorded = _state.tracer.start_span(
                self._name, parent, attributes=self._attributes
            )
            context = _context_of(self._recorded.get_span_context())
        self._token = _current.set(context)
        return context

    def tell(self, name: str, **attributes: str | int | float) -> None:
        """What is known only while it lasts: a better name, and more about it."""
        if self._recorded is not None:
            self._recorded.update_name(name)
            self._recorded.set_attributes(attributes)

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        _current.reset(self._token)
        if self._recorded is None:
            return
        if isinstance(error, Exception):
            self._recorded.record_exception(error)
            self._recorded.set_status(StatusCode.ERROR, f"{type(error).__name__}: {error}")
        self._recorded.end()


def span(
    name: str, parent: TraceContext | None = None, **attributes: str | int | float | bool
) -> Step:
    """A step of a trace: continues `parent`, else the current context, else a new trace.

    What is published within carries the step's own context, which `with` gives. An exception marks
    the span as failed and goes on. Without sampling no span is made and the parent's context is
    used as it is. OpenTelemetry's own context is left alone: every message would pay for it.
    """
    return Step(name, parent, attributes)


def _remote(context: TraceContext) -> NonRecordingSpan:
    flags = TraceFlags(TraceFlags.SAMPLED)
    ids = int(context.trace_id, 16), int(context.span_id, 16)
    return NonRecordingSpan(SpanContext(*ids, is_remote=True, trace_flags=flags))


def _context_of(ids: SpanContext) -> TraceContext:
    return TraceContext(f"{ids.trace_id:032x}", f"{ids.span_id:016x}", ids.trace_flags.sampled)
