"""What the platform asks of models."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from libs.kernel import TransientError


class Embedder(Protocol):
    """Text to unit vectors of one space. Raises: TransientError when it cannot run now."""

    name: str  # goes into the collection's name: another model is another collection

    @property
    def dimension(self) -> int:
        """Of a model on a server: known once it was `ready`; TransientError before."""
        ...

    async def ready(self) -> None:
        """See that the model is there. Every other call does so by itself, if it must."""
        ...

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n, dimension) float32, rows of unit length, in the order of `texts`."""
        ...

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """(dimension,) float32 of unit length."""
        ...

    def calibrate(self, cosine: float) -> float:
        """Map this model's raw cosine to a similarity in [0, 1] that floors can be set on."""
        ...


class Reranker(Protocol):
    """A cross-encoder: reads a question and a passage together. Off unless one is configured."""

    name: str

    async def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """How well each text answers, in their order; only the order of the scores means anything.

        Raises: TransientError when it cannot do so now or in time; PermanentError when it refuses.
        """
        ...


@dataclass(frozen=True, slots=True)
class Message:
    role: str  # system, user or assistant
    content: str


@dataclass(frozen=True, slots=True)
class Usage:
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ChatDelta:
    """A piece of an answer; the last one carries the finish reason."""

    text: str = ""
    finish_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a call is for; goes into its record."""

    tenant: str
    name: str  # plan, answer, ...
    turn_id: str | None = None


@dataclass(frozen=True, slots=True)
class ModelCall:
    """The record of one call, tries included."""

    purpose: Purpose
    model: str
    outcome: str  # done rate-limited timeout cut-off malformed refused unavailable cancelled
    seconds: float
    usage: Usage = Usage()


class CallLog(Protocol):
    """Where calls are recorded. Never raises: a call is not lost for its record."""

    async def record(self, call: ModelCall) -> None: ...


class ModelUnavailableError(TransientError):
    """The model could not answer, after the tries of the one retry owner."""

    def __init__(self, outcome: str, detail: str, *, missing: str = "") -> None:
        super().__init__(f"{outcome}: {detail}", missing=missing)
        self.outcome = outcome  # as in `ModelCall`
        self.detail = detail


class ChatModel(Protocol):
    """A language model behind the one entrance; retries and time limits are its own.

    Raises (both calls): ModelUnavailableError after its own retries (429, 5xx, time-outs, cut
    streams, malformed answers); PermanentError (`model-refused`) for requests refused for good.
    """

    name: str

    def stream(
        self, messages: Sequence[Message], *, purpose: Purpose, max_tokens: int
    ) -> AsyncGenerator[ChatDelta, None]:
        """The answer as it is made. Once text has come, an error ends it and nothing is retried."""
        ...

    async def complete_json(
        self,
        messages: Sequence[Message],
        *,
        schema: dict[str, object],
        purpose: Purpose,
        max_tokens: int,
    ) -> dict[str, object]:
        """One answer, a JSON object. `schema` guides the model; the caller still checks."""
        ...
