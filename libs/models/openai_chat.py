"""`ChatModel` over any OpenAI-compatible server; the one owner of retries to it."""

import asyncio
import codecs
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import openai
from openai.types.chat import ChatCompletionChunk

from libs.kernel import PermanentError
from libs.models.breaker import CircuitBreaker
from libs.models.openai_errors import MODEL_ERRORS, RetryableError, outcome_in_mid_answer
from libs.models.ports import (
    CallLog,
    ChatDelta,
    Message,
    ModelCall,
    ModelUnavailableError,
    Purpose,
    Usage,
)
from libs.models.trying import Tries, TryPolicy, now_s
from libs.observability.metrics import MODEL_CALLS, MODEL_SECONDS, MODEL_TOKENS

T = TypeVar("T")
# Servers may cut a character outside the BMP in two escapes, and send them in two pieces.
_WHOLE_CHARACTERS = codecs.getincrementaldecoder("utf-16-le")


@dataclass(frozen=True, slots=True)
class CallPolicy(TryPolicy):
    """Bounds on one call."""

    first_token_timeout_s: float = 30.0  # per try
    idle_timeout_s: float = 20.0  # between two pieces of an answer
    total_timeout_s: float = 120.0  # of the call, tries included


class _Record:
    """What a call's record will say."""

    def __init__(self) -> None:
        self.outcome = "cancelled"
        self.usage = Usage()


class OpenAIChatModel:
    """Chat completions of one model.

    Args:
        client: Made with `max_retries=0`, as retries are this class's own.
        calls: Gets a record of each call, whatever became of it.
    """

    def __init__(
        self,
        client: openai.AsyncOpenAI,
        name: str,
        calls: CallLog,
        *,
        policy: CallPolicy = CallPolicy(),
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self.name = name
        self._client = client
        self._calls = calls
        self._policy = policy
        self._tries = Tries(policy, breaker or CircuitBreaker())

    async def stream(
        self, messages: Sequence[Message], *, purpose: Purpose, max_tokens: int
    ) -> AsyncGenerator[ChatDelta, None]:
        deadline = self._deadline()
        async with self._recorded(purpose) as record:
            opened = await self._tried(lambda: self._open(messages, max_tokens), deadline)
            finish_reason: str | None = None
            decoder = _WHOLE_CHARACTERS("replace")
            async with opened as chunks:
                async for chunk in self._guarded(chunks, deadline):
                    record.usage = _usage(chunk) or record.usage
                    text, ended = _piece(chunk)
                    finish_reason = ended or finish_reason
                    if whole := decoder.decode(text.encode("utf-16-le", "surrogatepass")):
                        yield ChatDelta(whole)
            if finish_reason is None:
                raise ModelUnavailableError("cut-off", "the stream ended in the middle")
            yield ChatDelta(finish_reason=finish_reason)

    async def complete_json(
        self,
        messages: Sequence[Message],
        *,
        schema: dict[str, object],
        purpose: Purpose,
        max_tokens: int,
    ) -> dict[str, object]:
        async with self._recorded(purpose) as record:
            return await self._tried(
                lambda: self._complete(messages, schema, max_tokens, record), self._deadline()
            )

    async def _open(self, messages: Sequence[Message], max_tokens: int) -> "_Opened":
        """A stream whose first piece has come."""
        stream = await self._client.chat.completions.create(
            model=self.name,
            messages=_wire(messages),
            max_tokens=max_tokens,
            temperature=0.1,
            stream=True,
            stream_options={"include_usage": True},
        )
        opened = _Opened(stream)
        try:
            await opened.read_first()
        except BaseException:
            await stream.close()
            raise
        return opened

    async def _complete(
        self,
        messages: Sequence[Message],
        schema: dict[str, object],
        max_tokens: int,
        record: _Record,
    ) -> dict[str, object]:
        answer = await self._client.chat.completions.create(
            model=self.name,
            messages=_wire(messages),
            max_tokens=max_tokens,
            temperature=0,
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": schema, "strict": True},
            },
        )
        record.usage = _usage(answer) or record.usage
        choices = answer.choices or []
        if not choices or choices[0].finish_reason == "length":
            raise RetryableError("malformed", "the answer was cut off at its limit")
        content = getattr(choices[0].message, "content", None)
        value = json.loads(content if isinstance(content, str) else "")
        if not isinstance(value, dict):
            raise RetryableError("malformed", "not a JSON object")
        return value

    async def _tried(self, attempt: Callable[[], Awaitable[T]], deadline: float) -> T:
        """The result of the first try that succeeds. Raises: as `ChatModel`."""
        timeout_s = self._policy.first_token_timeout_s
        return await self._tries.first_success(attempt, deadline=deadline, timeout_s=timeout_s)

    async def _guarded(
        self, chunks: AsyncIterator[ChatCompletionChunk], deadline: float
    ) -> AsyncIterator[ChatCompletionChunk]:
        """Pieces within their time limits. Raises: ModelUnavailableError."""
        while True:
            try:
                limit = min(deadline, now_s() + self._policy.idle_timeout_s)
                async with asyncio.timeout_at(limit):
                    chunk = await anext(chunks)
            except StopAsyncIteration:
                return
            except MODEL_ERRORS as exc:
                self._tries.breaker.failed()
                raise ModelUnavailableError(outcome_in_mid_answer(exc), "it broke off") from None
            yield chunk

    @asynccontextmanager
    async def _recorded(self, purpose: Purpose) -> AsyncIterator[_Record]:
        record, start_s = _Record(), now_s()
        try:
            yield record
            record.outcome = "done"
        except ModelUnavailableError as exc:
            record.outcome = exc.outcome
            raise
        except PermanentError:
            record.outcome = "refused"
            raise
        finally:
            seconds = now_s() - start_s
            MODEL_CALLS.labels(self.name, record.outcome).inc()
            MODEL_SECONDS.labels(self.name).observe(seconds)
            MODEL_TOKENS.labels(self.name, "prompt").inc(record.usage.prompt_tokens)
            MODEL_TOKENS.labels(self.name, "completion").inc(record.usage.completion_tokens)
            call = ModelCall(purpose, self.name, record.outcome, seconds, record.usage)
            await self._calls.record(call)

    def _deadline(self) -> float:
        return now_s() + self._policy.total_timeout_s


class _Opened:
    """A stream and the first piece that was read of it."""

    def __init__(self, stream: openai.AsyncStream[ChatCompletionChunk]) -> None:
        self._stream = stream
        self._first: list[ChatCompletionChunk] = []

    async def read_first(self) -> None:
        """Read up to the first piece that answers something. Raises: RetryableError at an end."""
        while True:
            try:
                chunk = await anext(self._stream)
            except StopAsyncIteration:
                raise RetryableError("malformed", "an empty answer") from None
            self._first.append(chunk)
            if any(_piece(chunk)):
                return

    async def __aenter__(self) -> AsyncIterator[ChatCompletionChunk]:
        return self._chunks()

    async def __aexit__(self, *_: object) -> None:
        await self._stream.close()

    async def _chunks(self) -> AsyncIterator[ChatCompletionChunk]:
        for chunk in self._first:
            yield chunk
        async for chunk in self._stream:
            yield chunk


def _wire(messages: Sequence[Message]) -> Any:
    return [{"role": message.role, "content": message.content} for message in messages]


def _piece(chunk: Any) -> tuple[str, str | None]:
    """The text and the finish reason in a piece; the client library checks no types."""
    for choice in (getattr(chunk, "choices", None) or [])[:1]:
        text = getattr(getattr(choice, "delta", None), "content", None)
        return text if isinstance(text, str) else "", getattr(choice, "finish_reason", None)
    return "", None


def _usage(answer: Any) -> Usage | None:
    usage = getattr(answer, "usage", None)
    if usage is None:
        return None
    return Usage(usage.prompt_tokens or 0, usage.completion_tokens or 0)
