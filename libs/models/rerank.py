"""The rerank model that the settings name, or none."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from libs.kernel import PermanentError
from libs.models.breaker import CircuitBreaker
from libs.models.ports import ModelUnavailableError, Reranker
from libs.observability.metrics import MODEL_CALLS, MODEL_SECONDS

TIMEOUT_S = 3.0  # somebody waits for the search


class GuardedReranker:
    """`Reranker` around another: in time or not at all, and left alone while it keeps failing."""

    def __init__(
        self,
        inner: Reranker,
        *,
        timeout_s: float = TIMEOUT_S,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self.name = inner.name
        self._inner = inner
        self._timeout_s = timeout_s
        self._breaker = breaker or CircuitBreaker()

    async def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        if not texts:
            return []
        if not self._breaker.allows():
            raise ModelUnavailableError(
                "unavailable", f"{self.name} failed several times in a row and is left alone"
            )
        started, outcome = time.perf_counter(), "failed"
        try:
            scores = await self._in_time(query, texts)
            outcome = "done"
        except ModelUnavailableError as exc:
            outcome = exc.outcome
            raise
        except PermanentError:
            outcome = "refused"
            raise
        finally:
            self._breaker.succeeded() if outcome == "done" else self._breaker.failed()
            MODEL_CALLS.labels(self.name, outcome).inc()
            MODEL_SECONDS.labels(self.name).observe(time.perf_counter() - started)
        return scores

    async def _in_time(self, query: str, texts: Sequence[str]) -> list[float]:
        try:
            async with asyncio.timeout(self._timeout_s):
                scores = await self._inner.rerank(query, texts)
        except TimeoutError as exc:
            raise ModelUnavailableError("timeout", f"no answer in {self._timeout_s:g} s") from exc
        if len(scores) != len(texts) or not all(map(math.isfinite, scores)):
            raise ModelUnavailableError("malformed", "not one score for each text")
        return scores


@asynccontextmanager
async def open_reranker(
    base_url: str | None, name: str | None, api_key: str | None, model_dir: Path | None
) -> AsyncIterator[Reranker | None]:
    """A model behind a `/rerank` API, or in a folder, or none. The folder wins.

    Raises: PermanentError (`rerank-model`) for a folder that holds no usable model.
    """
    if model_dir is not None:
        from libs.models.rerank_onnx import OnnxReranker  # its libraries are large

        local = OnnxReranker(model_dir)
        try:
            yield GuardedReranker(local)
        finally:
            local.close()
    elif base_url:
        from libs.models.rerank_http import HttpReranker

        async with httpx.AsyncClient(trust_env=False, timeout=TIMEOUT_S) as client:
            yield GuardedReranker(HttpReranker(client, base_url, name, api_key))
    else:
        yield None
