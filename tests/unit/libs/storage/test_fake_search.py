"""The fakes keep the promises of the ports they stand in for."""

import pytest

from tests.fakes_search import FakeKeywords, FakeVectors
from tests.suites.search_index import KeywordIndexSuite, VectorIndexSuite


class TestFakeVectors(VectorIndexSuite):
    @pytest.fixture
    async def index(self, name: str) -> FakeVectors:
        index = FakeVectors()
        await index.ensure(name)
        return index


class TestFakeKeywords(KeywordIndexSuite):
    @pytest.fixture
    async def index(self, name: str) -> FakeKeywords:
        index = FakeKeywords()
        await index.ensure(name)
        return index
