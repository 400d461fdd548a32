"""Rerank servers: both bodies, every kind of failure, and a server that is left alone."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import httpx
import pytest

from libs.kernel import PermanentError
from libs.models.breaker import CircuitBreaker
from libs.models.ports import ModelUnavailableError
from libs.models.rerank import GuardedReranker, open_reranker
from libs.models.rerank_http import HttpReranker

TEXTS = ["one", "two", "three"]


def served(
    answer: Callable[[httpx.Request], httpx.Response], model: str | None = "judge"
) -> GuardedReranker:
    client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    return GuardedReranker(HttpReranker(client, "http://rerank/v1/", model, "k3y"))


async def test_a_named_model_is_asked_as_cohere_and_jina_are() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        results = [{"index": i, "relevance_score": i / 10} for i in (2, 0, 1)]
        return httpx.Response(200, json={"model": "judge", "results": results})

    assert await served(answer).rerank("why?", TEXTS) == [0.0, 0.1, 0.2]
    assert str(seen[0].url) == "http://rerank/v1/rerank"
    assert seen[0].headers["authorization"] == "Bearer k3y"
    body = {"model": "judge", "query": "why?", "documents": TEXTS, "top_n": 3}
    assert json.loads(seen[0].content) == body


async def test_a_server_of_one_model_is_asked_as_tei_is() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert json.loads(request.content) == {"query": "q", "texts": TEXTS, "truncate": True}
        return httpx.Response(200, json=[{"index": i, "score": -i} for i in (1, 0, 2)])

    assert await served(answer, None).rerank("q", TEXTS) == [0.0, -1.0, -2.0]


@pytest.mark.parametrize(
    ("status", "body", "outcome"),
    [
        (429, b"", "rate-limited"),
        (503, b"", "unavailable"),
        (200, b"<html>", "malformed"),
        (200, b'{"results": []}', "malformed"),
        (200, b'{"results": [{"index": 0, "relevance_score": 1}]}', "malformed"),
        (
            200,
            b'[{"index": 0, "score": NaN}, {"index": 1, "score": 0}, {"index": 2, "score": 0}]',
            "malformed",
        ),
        (200, b'"text"', "malformed"),
        (200, b"null", "malformed"),
        (200, b'[{"index": 0, "score": 1' + b"0" * 400 + b"}]", "malformed"),
        (200, b'[{"index": Infinity, "score": 1}]', "malformed"),
        (200, b"[" * 100_000, "malformed"),
    ],
)
async def test_what_goes_wrong_has_a_name(status: int, body: bytes, outcome: str) -> None:
    reranker = served(lambda _request: httpx.Response(status, content=body))
    with pytest.raises(ModelUnavailableError) as failure:
        await reranker.rerank("q", TEXTS)
    assert failure.value.outcome == outcome


async def test_a_refusal_names_the_settings_and_no_key() -> None:
    reranker = served(lambda _request: httpx.Response(401, text="bad key k3y"))
    with pytest.raises(PermanentError, match="RERANK_API_KEY") as failure:
        await reranker.rerank("q", TEXTS)
    assert "k3y" not in str(failure.value)


async def test_a_key_that_no_header_carries_is_named_and_not_shown() -> None:
    client = httpx.AsyncClient(transport=httpx.MockTransport(lambda _: httpx.Response(200)))
    reranker = GuardedReranker(HttpReranker(client, "http://rerank", "judge", "密钥"))
    with pytest.raises(PermanentError, match="RERANK_API_KEY") as failure:
        await reranker.rerank("q", TEXTS)
    assert "密" not in str(failure.value)


class Slow:
    name = "slow"

    async def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_model_that_is_late_is_not_waited_for_and_then_left_alone() -> None:
    breaker = CircuitBreaker(max_failures=2, pause_s=3_600)
    reranker = GuardedReranker(Slow(), timeout_s=0.01, breaker=breaker)
    outcomes: list[Any] = []
    for _ in range(3):
        with pytest.raises(ModelUnavailableError) as failure:
            await reranker.rerank("q", TEXTS)
        outcomes.append(failure.value.outcome)
    assert outcomes == ["timeout", "timeout", "unavailable"]


async def test_there_is_no_model_unless_one_is_named() -> None:
    async with open_reranker(None, "judge", "key", None) as reranker:
        assert reranker is None
    async with open_reranker("http://127.0.0.1:9", "judge", None, None) as reranker:
        assert reranker is not None
        with pytest.raises(ModelUnavailableError, match="not reachable"):
            await reranker.rerank("q", TEXTS)
        assert await reranker.rerank("q", []) == []
