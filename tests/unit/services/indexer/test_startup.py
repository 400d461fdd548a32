"""An indexer serves only on stores that find what they are given, in both languages."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from libs.documents.analysis import has_han
from libs.kernel import TransientError
from libs.storage.ports import IndexRow
from libs.storage.sql.active_index import ActiveIndex, read_or_make
from services.indexer.startup import prepare, probe, wanted_index
from tests.fakes_search import FakeEmbedder, FakeKeywords, FakeVectors
from tests.servers.databases import sqlite


class KeywordsWithoutChinese(FakeKeywords):
    """A backend whose Chinese terms are lost on the way."""

    async def upsert(self, name: str, rows: Sequence[IndexRow]) -> None:
        await super().upsert(name, [row for row in rows if not has_han("".join(row.terms))])


async def test_the_active_index_is_made_once_and_probed_without_a_trace(tmp_path: Path) -> None:
    vectors, keywords = FakeVectors(), FakeKeywords()
    async with sqlite(tmp_path) as db:
        active = await prepare(db, FakeEmbedder(), vectors, keywords)
        assert active == await prepare(db, FakeEmbedder(), vectors, keywords)
    assert active == wanted_index(FakeEmbedder())
    assert not any(vectors.rows.values())
    assert not any(keywords.rows.values())


class VectorsOfTwo(FakeVectors):
    """Between the first indexer's write and its search another one starts, and is ready."""

    def __init__(self, keywords: FakeKeywords) -> None:
        super().__init__()
        self._keywords = keywords
        self._is_first = True

    async def upsert(self, name: str, rows: Sequence[IndexRow]) -> None:
        await super().upsert(name, rows)
        if self._is_first:
            self._is_first = False
            active = wanted_index(FakeEmbedder())
            await probe(active, FakeEmbedder(), self, self._keywords)


async def test_indexers_that_start_together_do_not_disturb_each_other(tmp_path: Path) -> None:
    keywords = FakeKeywords()
    vectors = VectorsOfTwo(keywords)
    async with sqlite(tmp_path) as db:
        await prepare(db, FakeEmbedder(), vectors, keywords)
    assert not any(vectors.rows.values())
    assert not any(keywords.rows.values())


async def test_a_store_that_is_away_or_loses_a_language_is_not_served_on(tmp_path: Path) -> None:
    async with sqlite(tmp_path) as db:
        with pytest.raises(TransientError, match="does not find its zh probe"):
            await prepare(db, FakeEmbedder(), FakeVectors(), KeywordsWithoutChinese())
        with pytest.raises(TransientError, match="away"):
            await prepare(db, FakeEmbedder(), FakeVectors(away=True), FakeKeywords())


class KeywordsWithAnAnalyser(FakeKeywords):
    """A backend that cuts terms once more, or drops some."""

    def __init__(self, loses: str) -> None:
        super().__init__()
        self._loses = re.compile(loses)

    async def upsert(self, name: str, rows: Sequence[IndexRow]) -> None:
        kept = [replace(r, terms=[t for t in r.terms if not self._loses.search(t)]) for r in rows]
        await super().upsert(name, kept)


@pytest.mark.parametrize(
    ("loses", "probe"),
    [
        (r"[a-z]+\d", "mixed term"),
        ("19001", "standard"),
        (r"\d{8}", "error code"),
        ("^第|^12$|十二", "article"),
    ],
)
async def test_a_keyword_index_that_loses_names_and_codes_is_not_served_on(
    tmp_path: Path, loses: str, probe: str
) -> None:
    async with sqlite(tmp_path) as db:
        with pytest.raises(TransientError, match=f"does not find its {probe} probe"):
            await prepare(db, FakeEmbedder(), FakeVectors(), KeywordsWithAnAnalyser(loses))


class MisdeclaredEmbedder(FakeEmbedder):
    dimension = 2 * FakeEmbedder.dimension


async def test_a_model_whose_vectors_have_other_dimensions_than_declared_is_not_served_on(
    tmp_path: Path,
) -> None:
    async with sqlite(tmp_path) as db:
        with pytest.raises(TransientError, match="64 dimensions, not of the 128"):
            await prepare(db, MisdeclaredEmbedder(), FakeVectors(), FakeKeywords())


async def test_an_index_of_another_model_is_left_as_it_is(tmp_path: Path) -> None:
    other, vectors = ActiveIndex("other-model", "vectors", "keywords"), FakeVectors()
    async with sqlite(tmp_path) as db:
        await read_or_make(db, other, analyser=1)
        assert await prepare(db, FakeEmbedder(), vectors, FakeKeywords()) == other
    assert not any(vectors.rows.values())
