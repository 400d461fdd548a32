"""What the platform asks of models."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Embedder(Protocol):
    """Text to unit vectors of one space. Raises: TransientError when it cannot run now."""

    name: str  # goes into the collection's name: another model is another collection
    dimension: int

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n, dimension) float32, rows of unit length, in the order of `texts`."""
        ...

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """(dimension,) float32 of unit length."""
        ...

    def calibrate(self, cosine: float) -> float:
        """Map this model's raw cosine to a similarity in [0, 1] that floors can be set on."""
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
    """A piece of an answer; the last one carries the finish reason and the usage."""

    text: str = ""
    finish_reason: str | None = None
    usage: Usage | None = None


class ChatModel(Protocol):
    """A language model behind the one entrance.

    Raises: TransientError after its own retries (429, 5xx, time-outs, cut streams);
    PermanentError for requests the model refuses for good.
    """

    name: str

    def stream(
        self, messages: Sequence[Message], *, max_tokens: int
    ) -> AsyncIterator[ChatDelta]: ...

    async def complete_json(
        self, messages: Sequence[Message], *, schema: dict[str, object], max_tokens: int
    ) -> dict[str, object]:
        """One answer that fits `schema`. Raises: TransientError also for malformed JSON."""
        ...
