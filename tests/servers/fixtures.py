"""The servers that tests share, each started when the first test of a session asks for it."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.servers.elasticsearch import Elasticsearch
from tests.servers.frame import Server, running
from tests.servers.kafka import Kafka
from tests.servers.mariadb import MariaDb
from tests.servers.milvus import Milvus
from tests.servers.minio import MinioServer
from tests.servers.proxy import Proxy, proxy_to
from tests.servers.tika import TikaServer


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDb]:
    with running(MariaDb(tmp_path_factory.mktemp("mariadb"))) as server:
        yield server


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with running(Kafka(tmp_path_factory.mktemp("kafka"), secured=True)) as server:
        yield server


@pytest.fixture(scope="session")
def elasticsearch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elasticsearch]:
    with running(Elasticsearch(tmp_path_factory.mktemp("elasticsearch"))) as server:
        yield server


@pytest.fixture(scope="session")
def milvus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Milvus]:
    with running(Milvus(tmp_path_factory.mktemp("milvus"))) as server:
        yield server


@pytest.fixture(scope="session")
def minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MinioServer]:
    with running(MinioServer(tmp_path_factory.mktemp("minio"))) as server:
        yield server


@pytest.fixture(scope="session")
def tika(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TikaServer]:
    with running(TikaServer(tmp_path_factory.mktemp("tika"))) as server:
        yield server


@pytest.fixture
async def proxy(server: Server) -> AsyncIterator[Proxy]:
    """In front of the server that a module calls `server`."""
    async with proxy_to(server.port) as proxy:
        yield proxy
