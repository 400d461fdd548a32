"""`Reranker` over a `/rerank` API.

Two bodies are in use. With a model's name: `{model, query, documents, top_n}`, answered by
`{results: [{index, relevance_score}]}` (Cohere, Jina, vLLM). Without one, as the server has
only one: `{query, texts}`, answered by `[{index, score}]` (Text Embeddings Inference).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from libs.kernel import PermanentError
from libs.models.ports import ModelUnavailableError


class HttpReranker:
    """
    Args:
        base_url: What stands before `/rerank`, for example `https://api.jina.ai/v1`.
        model: None: the server has one model, and takes no name.
    """

    def __init__(
        self, client: httpx.AsyncClient, base_url: str, model: str | None, api_key: str | None
    ) -> None:
        self.name = model or "rerank"
        self._client = client
        self._url = f"{base_url.rstrip('/')}/rerank"
        self._model = model
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}

    async def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        try:
            answer = await self._client.post(
                self._url, json=self._body(query, texts), headers=self._headers
            )
        except httpx.TimeoutException as exc:
            raise ModelUnavailableError("timeout", "no answer in time") from exc
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            raise ModelUnavailableError("unavailable", "not reachable") from exc
        except UnicodeEncodeError:  # from None: the error holds the key
            raise PermanentError(
                "model-refused", "RERANK_API_KEY has characters that no HTTP header can carry."
            ) from None
        _check(answer.status_code)
        try:
            return self._scores(answer.json(), len(texts))
        except (ValueError, LookupError, TypeError, OverflowError, RecursionError) as exc:
            raise ModelUnavailableError("malformed", "not one score for each text") from exc

    def _body(self, query: str, texts: Sequence[str]) -> dict[str, Any]:
        if self._model is None:
            return {"query": query, "texts": list(texts), "truncate": True}
        return {
            "model": self._model,
            "query": query,
            "documents": list(texts),
            "top_n": len(texts),
        }

    def _scores(self, answer: Any, count: int) -> list[float]:
        """Raises: ValueError, LookupError, TypeError, OverflowError: not the protocol's."""
        results = answer["results"] if isinstance(answer, Mapping) else answer
        field = "relevance_score" if isinstance(answer, Mapping) else "score"
        scores = {int(each["index"]): float(each[field]) for each in results}
        return [scores[index] for index in range(count)]


def _check(status: int) -> None:
    if status == 429:
        raise ModelUnavailableError("rate-limited", "HTTP 429")
    if status >= 500 or status in (408, 409):
        raise ModelUnavailableError("unavailable", f"HTTP {status}")
    if status >= 300:
        raise PermanentError(
            "model-refused",
            f"The rerank server refused the request: HTTP {status}. Check RERANK_BASE_URL, "
            "RERANK_MODEL and RERANK_API_KEY.",
        )
