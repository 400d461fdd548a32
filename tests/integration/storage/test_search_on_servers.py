"""The fused search finds the same on full-size servers as on the embedded ones."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from libs.kernel import TransientError, new_id
from libs.retrieval import Retriever
from libs.storage.keywords import TantivyKeywords
from libs.storage.keywords.elasticsearch import ElasticsearchKeywords
from libs.storage.sql.active_index import ActiveIndex
from libs.storage.vectors import MilvusVectors
from tests.fakes_search import FakeEmbedder
from tests.library import Library
from tests.milvus_lite import MilvusLite, milvus_lite
from tests.servers.databases import sqlite
from tests.servers.elasticsearch import Elasticsearch
from tests.servers.milvus import Milvus
from tests.waiting import eventually

pytestmark = pytest.mark.on_server

SUBJECTS = ("发票", "差旅", "年假", "parcels", "invoices", "holidays")
TEXTS = {
    f"d{i}": "\n".join(
        f"{subject}的第{i}条规定：上限为{i * 100 + at}元 within {i + at} days, form A-{i}{at}."
        + " filler" * (5 * at + i)
        for at, subject in enumerate(SUBJECTS)
    )
    for i in range(5)
}
QUESTIONS = ("差旅的上限", "发票 A-30", "how many days for parcels?", "form A-13", "年假 rule 7")


@pytest.fixture
def lite(tmp_path: Path) -> Iterator[MilvusLite]:
    with milvus_lite(tmp_path / "lite") as server:
        yield server


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    both = tmp_path / "embedded", tmp_path / "full"
    for folder in both:
        folder.mkdir()
    return both


@pytest.fixture
async def libraries(
    folders: tuple[Path, Path], lite: MilvusLite, milvus: Milvus, elasticsearch: Elasticsearch
) -> AsyncIterator[list[Library]]:
    """The same documents, on embedded parts and on servers."""
    keywords = TantivyKeywords(folders[0] / "keywords", writes=True)
    on_server = ElasticsearchKeywords(elasticsearch.url())
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(_library(folders[0], lite.uri, keywords)),
            await stack.enter_async_context(_library(folders[1], milvus.uri, on_server)),
        ]


async def test_hits_and_scores_are_the_same(libraries: list[Library]) -> None:
    for question in QUESTIONS:
        for domains in ([], ["odd"]):
            embedded, full = [
                [
                    (hit.document_id, hit.text, hit.scores.keyword, hit.scores.vector)
                    for hit in await _retriever(library).search(
                        "t", question, domains=domains, limit=8
                    )
                ]
                for library in libraries
            ]
            assert embedded
            assert [hit[:2] for hit in full] == [hit[:2] for hit in embedded], question
            for one, other in zip(full, embedded, strict=True):
                assert one[2:] == pytest.approx(other[2:], abs=1e-3), question


async def test_raw_scores_are_the_same(libraries: list[Library]) -> None:
    embedded, full = [
        await library.keywords.search(library.active.keyword_index, "t", ["差旅", "上限"], 9)
        for library in libraries
    ]
    assert [hit.score for hit in full] == pytest.approx([hit.score for hit in embedded], rel=1e-4)


def _retriever(library: Library) -> Retriever:
    return Retriever(library.db, library.embedder, library.vectors, library.keywords)


@asynccontextmanager
async def _library(
    folder: Path, milvus_uri: str, keywords: TantivyKeywords | ElasticsearchKeywords
) -> AsyncIterator[Library]:
    vectors = MilvusVectors(milvus_uri, FakeEmbedder.dimension)
    of = new_id()
    active = ActiveIndex(FakeEmbedder.name, f"vectors_{of}", f"keywords_{of}")
    async with sqlite(folder) as db:
        library = Library(db, FakeEmbedder(), vectors, keywords, active)
        await eventually(library.open, on=TransientError)
        for at, (document_id, text) in enumerate(TEXTS.items()):
            await library.add(document_id, text, domain="odd" if at % 2 else "even")
        yield library
        await vectors.drop(active.vector_collection)
        await keywords.drop(active.keyword_index)
    await vectors.close()
    await keywords.close()
