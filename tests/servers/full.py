"""Every server of a full-size platform at once, and the settings that point the product at them."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.servers.databases import empty_database
from tests.servers.elasticsearch import Elasticsearch
from tests.servers.frame import Server, launched
from tests.servers.kafka import Kafka
from tests.servers.mariadb import MariaDb
from tests.servers.milvus import Milvus
from tests.servers.minio import MinioServer
from tests.servers.tika import TikaServer

BUCKET = "sluice-tests"


class FullSize:
    """Each server by what it is, none of them started yet."""

    def __init__(self, folder: Path, kafka: Kafka | None = None) -> None:
        self.kafka = kafka or Kafka(folder / "kafka")
        self.mariadb = MariaDb(folder / "mariadb")
        self.minio = MinioServer(folder / "minio")
        self.tika = TikaServer(folder / "tika")
        # Frozen for longer than its lease it gives up, and stays useless.
        self.milvus = Milvus(folder / "milvus", lease_s=20)
        self.elasticsearch = Elasticsearch(folder / "elasticsearch")
        self.database_url = ""  # once the server is there

    @property
    def servers(self) -> dict[str, Server]:
        """By the names of the Compose file, the slowest to start first."""
        return {
            "elasticsearch": self.elasticsearch,
            "milvus": self.milvus,
            "kafka": self.kafka,
            "tika": self.tika,
            "mysql": self.mariadb,
            "minio": self.minio,
        }

    @property
    def settings(self) -> Mapping[str, str]:
        """What the product reads."""
        return {
            "KAFKA_BOOTSTRAP": self.kafka.bootstrap,
            "KAFKA_IDEMPOTENCE": "true",
            "DATABASE_URL": self.database_url,
            "S3_ENDPOINT": self.minio.endpoint,
            "S3_BUCKET": BUCKET,
            "S3_ACCESS_KEY": self.minio.access_key,
            "S3_SECRET_KEY": self.minio.secret_key,
            "TIKA_URL": self.tika.url,
            "MILVUS_URI": self.milvus.uri,
            "ELASTICSEARCH_URL": self.elasticsearch.url(),
        }


@contextlib.contextmanager
def running_all(full: FullSize) -> Iterator[FullSize]:
    """All of them, ready. A missing one skips the test, or fails it in CI."""
    with contextlib.ExitStack() as stack:
        for server in full.servers.values():
            stack.enter_context(launched(server))
        for server in full.servers.values():
            server.wait_ready()
        yield full


@contextlib.contextmanager
def full_size(folder: Path) -> Iterator[FullSize]:
    """As `running_all`, with an empty database. Use it outside any event loop."""
    with running_all(FullSize(folder)) as full, empty_database(full.mariadb.url()) as url:
        full.database_url = url
        yield full
