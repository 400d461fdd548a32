"""MinIO, as found on PATH or built from its source by Go, once (some minutes)."""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path

from minio import Minio
from minio.error import MinioException
from urllib3 import PoolManager
from urllib3.exceptions import HTTPError

from libs.kernel import new_id
from libs.storage.objects.s3 import S3ObjectStore
from libs.storage.objects.s3_access import S3Access, S3Policy
from tests.servers.frame import MissingServerError, Server, cached, download, program

MODULE = "github.com/minio/minio"
VERSION = "v0.0.0-20260212201848-7aac2a2c5b7c"  # its tags are not of Go's form
INSTALL = "put a minio binary, or Go 1.24 or newer, on PATH"


class MinioServer(Server):
    """One server on one folder, with its administrator's key."""

    name = "MinIO"
    access_key = "sluice-tests"
    secret_key = "sluice-tests-secret"

    @cached_property
    def _program(self) -> Path:
        try:
            return Path(program("minio", install=INSTALL))
        except MissingServerError:
            return cached(f"minio-{VERSION}", _build) / "minio"

    def provide(self) -> None:
        assert self._program.is_file()

    def command(self) -> Sequence[str | Path]:
        address = f"127.0.0.1:{self.port}"
        return [self._program, "server", self.data, "--address", address, "--quiet"]

    def environment(self) -> Mapping[str, str]:
        return {
            "MINIO_ROOT_USER": self.access_key,
            "MINIO_ROOT_PASSWORD": self.secret_key,
            "MINIO_BROWSER": "off",
            "MINIO_UPDATE": "off",
        }

    def is_ready(self) -> bool:
        try:
            self.client().list_buckets()
        except (MinioException, HTTPError):
            return False
        return True

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self) -> Minio:
        """The vendor's own client, to look at the server past our code."""
        at = f"127.0.0.1:{self.port}"
        http = PoolManager(timeout=2.0, retries=False)
        return Minio(at, self.access_key, self.secret_key, secure=False, http_client=http)


@asynccontextmanager
async def bucket_on(
    server: MinioServer, policy: S3Policy | None = None, *, port: int | None = None
) -> AsyncIterator[S3ObjectStore]:
    """A store over a bucket of its own; by another port (a proxy's), if one is given."""
    store = S3ObjectStore(access_to(server, port=port), policy)
    yield store
    await store.close()


def access_to(server: MinioServer, *, port: int | None = None) -> S3Access:
    """To a bucket that isn't there yet."""
    endpoint = f"http://127.0.0.1:{port or server.port}"
    return S3Access(endpoint, f"test-{new_id()}", server.access_key, server.secret_key)


def _build(folder: Path) -> None:
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/go/bin"])
    go = program("go", "/usr/local/go/bin/go", install=INSTALL)
    variables = [f"GOBIN={folder}", f"PATH={path}", "CGO_ENABLED=0"]
    download(["env", *variables, go, "install", f"{MODULE}@{VERSION}"])
