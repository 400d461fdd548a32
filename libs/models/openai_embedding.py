"""`Embedder` over any OpenAI-compatible `/embeddings` API."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import openai
import structlog
from numpy.typing import NDArray

from libs.kernel import PermanentError
from libs.models import calibration
from libs.models.breaker import CircuitBreaker
from libs.models.openai_errors import RetryableError
from libs.models.ports import ModelUnavailableError
from libs.models.trying import Tries, TryPolicy, now_s
from libs.observability.metrics import MODEL_CALLS, MODEL_SECONDS

log = structlog.get_logger(__name__)

Vectors = NDArray[np.float32]
MISSING = "embeddings"  # as readiness names the server
_SHORTEST = 32  # characters; a text that is refused at this length is not refused for it
_TOO_LONG = frozenset({400, 413, 422})  # what servers answer to texts beyond their model's window


@dataclass(frozen=True, slots=True)
class EmbeddingPolicy(TryPolicy):
    """Bounds on one request.

    Args:
        batch_texts, batch_chars: What one request may hold; a longer text has one to itself.
        passage_requests: At a time. Questions wait for none.
    """

    batch_texts: int = 32
    batch_chars: int = 40_000
    passage_requests: int = 4
    query_timeout_s: float = 10.0  # per try
    passages_timeout_s: float = 60.0  # per try
    total_timeout_s: float = 120.0  # of a request, tries included


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """
    Args:
        name: The model, as the server knows it.
        query_prefix, passage_prefix: What the model wants before each, such as `query: `.
        points: The cosines that count as a similarity of 0, 0.45 and 1; None: measured.
    """

    name: str
    query_prefix: str = ""
    passage_prefix: str = ""
    points: calibration.Points | None = None

    @property
    def space(self) -> str:
        """The name of its vectors' space: another prefix makes other vectors of the same texts."""
        prefix = self.passage_prefix.strip()
        return f"{self.name} ({prefix})" if prefix else self.name


class _RefusedTextError(Exception):
    """The server takes no text of this request."""


class OpenAIEmbedder:
    """The server is asked for `dimension` and measured for `calibrate` with the first use.

    A text beyond the model's window is cut in halves until the server takes them, and their
    vectors are averaged by length, as the bundled model does: correct, but blurred. So the same
    text has the same vector whatever it was sent with. A server that cuts by itself is not noticed.

    Args:
        client: Made with `max_retries=0`, as retries are this class's own.

    Raises (every method): ModelUnavailableError, also for a refused key and an unknown model, whose
    text says what to set; PermanentError (`embedding-refused`) for a text that is refused however
    short it is cut.
    """

    def __init__(
        self,
        client: openai.AsyncOpenAI,
        model: EmbeddingModel,
        *,
        policy: EmbeddingPolicy = EmbeddingPolicy(),
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self.name = model.space
        self._client = client
        self._model = model
        self._policy = policy
        self._tries = Tries(policy, breaker or CircuitBreaker())
        self._passages = asyncio.Semaphore(policy.passage_requests)
        self._learning = asyncio.Lock()
        self._dimension = 0  # not known yet
        self._points = model.points
        self._most_texts = policy.batch_texts
        self._refused_chars = 1 << 30  # the shortest text that was refused: sent alone from then on

    @property
    def dimension(self) -> int:
        if not self._dimension:
            raise ModelUnavailableError("unavailable", "not asked yet", missing=MISSING)
        return self._dimension

    async def ready(self) -> None:
        async with self._learning:
            if self._dimension and self._points:
                return
            try:
                await self._learn()
            except _RefusedTextError:
                detail = f"{self._model.name} takes no texts: check EMBED_BASE_URL and EMBED_MODEL"
                raise ModelUnavailableError("refused", detail, missing=MISSING) from None
            except PermanentError as exc:
                detail = f"{self._model.name}: {exc.detail} (EMBED_MODEL, EMBED_COSINES)"
                raise ModelUnavailableError("malformed", detail, missing=MISSING) from None

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        await self.ready()
        cleaned = [_clean(text) for text in texts]
        vectors = np.zeros((len(texts), self._dimension), dtype=np.float32)

        async def fill(places: Sequence[int]) -> None:
            vectors[places] = await self._embedded([cleaned[place] for place in places])

        await asyncio.gather(*(fill(places) for places in self._batches(cleaned)))
        return vectors

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        await self.ready()
        vectors = await self._embedded([_clean(text)], is_query=True)
        return np.asarray(vectors[0])

    def calibrate(self, cosine: float) -> float:
        """By the points that are set, else by those that the model's own vectors gave."""
        if self._points is None:
            raise ModelUnavailableError("unavailable", "not measured yet", missing=MISSING)
        return calibration.similarity(cosine, self._points)

    async def _learn(self) -> None:
        questions = await self._request(list(calibration.QUESTIONS), is_query=True)
        passages = await self._request(list(calibration.PASSAGES))
        if self._points is None:
            self._points = calibration.measured(questions, passages)
        self._dimension = passages.shape[1]
        log.info(
            "embedding_model", model=self.name, dimension=self._dimension, cosines=self._points
        )

    def _batches(self, texts: Sequence[str]) -> Iterator[list[int]]:
        """Places of texts that go together, so that what is refused alone is sent alone."""
        batch: list[int] = []
        chars = 0
        for place, text in enumerate(texts):
            if len(text) >= self._refused_chars:
                yield [place]
                continue
            full = len(batch) >= self._most_texts
            if batch and (full or chars + len(text) > self._policy.batch_chars):
                yield batch
                batch, chars = [], 0
            batch.append(place)
            chars += len(text)
        if batch:
            yield batch

    async def _embedded(self, texts: list[str], *, is_query: bool = False) -> Vectors:
        try:
            if is_query:
                return await self._request(texts, is_query=True)
            async with self._passages:
                return await self._request(texts)
        except _RefusedTextError:
            if len(texts) > 1:
                return await self._one_by_one(texts, is_query=is_query)
            return await self._by_halves(texts[0], is_query=is_query)

    async def _one_by_one(self, texts: list[str], *, is_query: bool) -> Vectors:
        shortest_refused = self._refused_chars
        alone = [await self._embedded([text], is_query=is_query) for text in texts]
        if self._refused_chars == shortest_refused and max(map(len, texts)) < shortest_refused:
            self._most_texts = min(self._most_texts, max(1, len(texts) // 2))  # it was too many
        return np.concatenate(alone)

    async def _by_halves(self, text: str, *, is_query: bool) -> Vectors:
        if len(text) <= _SHORTEST:
            detail = f"{self.name} makes no vector of {text!r}, which is in the document."
            raise PermanentError("embedding-refused", detail)
        self._refused_chars = min(self._refused_chars, len(text))
        middle = len(text) // 2
        halves = [text[:middle], text[middle:]]
        first, second = [await self._embedded([half], is_query=is_query) for half in halves]
        mean = np.float64(middle) * first + np.float64(len(text) - middle) * second
        return _unit(mean) if mean.any() else first

    async def _request(self, texts: list[str], *, is_query: bool = False) -> Vectors:
        """One request's vectors, in order, of unit length. Raises: _RefusedTextError."""
        policy, model = self._policy, self._model
        prefix = model.query_prefix if is_query else model.passage_prefix
        started, outcome = now_s(), "cancelled"
        try:
            vectors = await self._tries.first_success(
                lambda: self._one([prefix + text for text in texts]),
                deadline=started + policy.total_timeout_s,
                timeout_s=policy.query_timeout_s if is_query else policy.passages_timeout_s,
            )
            outcome = "done"
        except ModelUnavailableError as exc:
            outcome = exc.outcome
            detail = f"embeddings at {self._client.base_url.host}: {exc.detail}"
            raise ModelUnavailableError(outcome, detail, missing=MISSING) from None
        except _RefusedTextError:
            outcome = "refused"
            raise
        finally:
            MODEL_CALLS.labels(self.name, outcome).inc()
            MODEL_SECONDS.labels(self.name).observe(now_s() - started)
        return vectors

    async def _one(self, texts: list[str]) -> Vectors:
        try:
            answer = await self._client.embeddings.create(
                model=self._model.name, input=texts, encoding_format="float"
            )
        except openai.RateLimitError:
            raise
        except openai.APIStatusError as exc:
            if exc.status_code in _TOO_LONG:
                raise _RefusedTextError from None
            if exc.status_code >= 500 or exc.status_code in (408, 409):
                raise
            raise ModelUnavailableError(
                "refused",
                f"HTTP {exc.status_code}: check EMBED_BASE_URL, EMBED_MODEL and EMBED_API_KEY",
            ) from None
        except UnicodeEncodeError:  # from None: the error holds the key
            detail = "EMBED_API_KEY has characters that no HTTP header can carry"
            raise ModelUnavailableError("refused", detail) from None
        return _unit(self._ordered(answer, len(texts)))

    def _ordered(self, answer: Any, count: int) -> NDArray[np.float64]:
        """The vectors by their index: the client library checks nothing. Raises: RetryableError."""
        try:
            found = {int(each.index): each.embedding for each in answer.data}
            vectors = np.array([found[place] for place in range(count)], dtype=np.float64)
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError):
            raise RetryableError("malformed", "not one vector for each text") from None
        wanted = (count, self._dimension or vectors.shape[-1])
        if vectors.shape != wanted or len(answer.data) != count:
            shape = f"{vectors.shape}, not {wanted}"
            raise RetryableError("malformed", f"vectors of another shape or number: {shape}")
        with np.errstate(over="ignore"):
            lengths = np.linalg.norm(vectors, axis=1)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise RetryableError("malformed", "a vector of no direction")
        return vectors


def _unit(vectors: NDArray[np.float64]) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / lengths, dtype=np.float32)


def _clean(text: str) -> str:
    """Some servers take no empty text, and JSON no half characters."""
    cleaned = text.replace("\x00", " ").encode("utf-8", "replace").decode()
    return cleaned if cleaned.strip() else "."
