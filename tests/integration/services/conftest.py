"""The real vector server, one for each module that asks for it."""

from collections.abc import Iterator

import pytest

from tests.milvus_lite import MilvusLite, milvus_lite


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MilvusLite]:
    with milvus_lite(tmp_path_factory.mktemp("milvus")) as server:
        yield server
