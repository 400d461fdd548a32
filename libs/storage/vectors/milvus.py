"""`VectorIndex` on Milvus: the embedded Milvus Lite server or a full Milvus."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, Final, TypeVar

import grpc
from pymilvus import MilvusClient, MilvusException

from libs.kernel import to_its_end
from libs.observability import redacted
from libs.storage.ports import IndexEntry, IndexHit, IndexRow, Vector
from libs.storage.vectors.collection import (
    READ,
    SEARCH,
    Server,
    check,
    make,
    renew_index,
    search_params,
    to_entity,
    to_entry,
    to_hit,
)
from libs.storage.vectors.errors import to_error
from libs.storage.vectors.filters import (
    document_filter,
    rows_filter,
    tenant_filter,
)
from libs.storage.vectors.flushing import Flusher, FlushPolicy
from libs.storage.vectors.writing import await_findable, write

T = TypeVar("T")

_NOT_LOADED: Final = 101
PAGE: Final = 5_000
# The client's own 10 s are more pings than a gRPC server allows by default: it hangs up.
_KEEPALIVE: Final = {
    "grpc.keepalive_time_ms": 300_000,
    "grpc.keepalive_permit_without_calls": False,
}


class MilvusVectors:
    """`VectorIndex` over the server at `uri`; vectors are `dimension` float32 of unit length.

    A dimension that is not known yet is asked for when a collection is made.

    The synchronous client runs in threads, as the asynchronous one cannot make an index on Milvus
    Lite. Every call has a deadline; whoever calls owns retries beyond it. Flushes are made for
    Milvus Lite alone: a full Milvus seals segments by itself and limits the rate of such calls.
    Writes wait until they can be found, so that searches need not (see `SEARCH`).
    """

    def __init__(
        self,
        uri: str,
        dimension: int | Callable[[], int],
        *,
        token: str = "",
        timeout_s: float = 10.0,
        flush: FlushPolicy | None = None,
    ) -> None:
        self._uri = uri
        self._where = redacted(uri)
        self._dimension = dimension
        self._token = token
        self._timeout_s = timeout_s
        self._threads = ThreadPoolExecutor(8, thread_name_prefix="milvus")
        self._connecting = Lock()
        self._client: MilvusClient | None = None
        self._server = Server()
        self._flusher = Flusher(self.flush, flush or FlushPolicy())

    async def ensure(self, name: str) -> None:
        dimension = self._dimension() if callable(self._dimension) else self._dimension

        def ensure(client: MilvusClient) -> None:
            if not client.has_collection(name, timeout=self._timeout_s):
                make(
                    client,
                    name,
                    dimension,
                    is_lite=self._server.is_lite,
                    timeout_s=self._timeout_s,
                )
            else:
                check(client, name, dimension, timeout_s=self._timeout_s)
                if self._server.is_lite:
                    renew_index(client, name, timeout_s=self._timeout_s)
            client.load_collection(name, timeout=self._timeout_s)

        await self._call(name, ensure)

    async def drop(self, name: str) -> None:
        self._flusher.forget(name)

        def drop(client: MilvusClient) -> None:
            if client.has_collection(name, timeout=self._timeout_s):
                client.drop_collection(name, timeout=self._timeout_s)

        await self._call(name, drop)

    async def exists(self, name: str) -> bool:
        return await self._call(
            name, lambda client: bool(client.has_collection(name, timeout=self._timeout_s))
        )

    async def upsert(self, name: str, rows: Sequence[IndexRow]) -> None:
        if not rows:
            return
        data = [to_entity(row) for row in rows]

        def write_all(client: MilvusClient) -> None:
            write(client, self._server, name, data, timeout_s=self._timeout_s)

        await to_its_end(self._call(name, write_all))
        if self._server.is_lite:
            self._flusher.wrote(name, len(rows))

    async def search(
        self,
        name: str,
        tenant: str,
        query: Vector,
        limit: int,
        *,
        domains: Sequence[str] = (),
        documents: Sequence[str] = (),
    ) -> list[IndexHit]:
        if limit < 1:
            return []
        rows = tenant_filter(tenant, domains=domains, documents=documents)

        def search(client: MilvusClient) -> Any:
            return client.search(
                name,
                data=[query],
                limit=limit,
                filter=rows,
                output_fields=["chunk_id", "document_id", "generation"],
                search_params=search_params(limit, is_lite=self._server.is_lite),
                consistency_level=SEARCH,
                timeout=self._timeout_s,
            )

        hits = [to_hit(found) for found in (await self._call(name, search))[0]]
        return sorted(hits, key=lambda hit: (-hit.score, hit.chunk_id))

    async def delete(
        self, name: str, tenant: str, document_id: str, *, generations: range | None = None
    ) -> None:
        rows = document_filter(tenant, document_id, generations=generations)

        def delete(client: MilvusClient) -> None:
            client.delete(name, filter=rows, timeout=self._timeout_s)
            await_findable(client, self._server, name, timeout_s=self._timeout_s)

        await self._call(name, delete)

    async def count(self, name: str, tenant: str, document_id: str | None = None) -> int:
        rows = rows_filter(tenant, document_id)

        def count(client: MilvusClient) -> Any:
            return client.query(
                name,
                filter=rows,
                output_fields=["count(*)"],
                consistency_level=READ,
                timeout=self._timeout_s,
            )

        return int((await self._call(name, count))[0]["count(*)"])

    async def entries(
        self, name: str, tenant: str, document_id: str | None = None
    ) -> AsyncIterator[list[IndexEntry]]:
        rows = rows_filter(tenant, document_id)

        def begin(client: MilvusClient) -> Any:
            return client.query_iterator(
                name,
                batch_size=PAGE,
                filter=rows,
                output_fields=["chunk_id", "document_id", "generation"],
                consistency_level=READ,
                timeout=self._timeout_s,
            )

        iterator = await self._call(name, begin)
        while found := await self._call(name, lambda _client: iterator.next()):
            yield [to_entry(entity) for entity in found]

    async def flush(self, name: str) -> None:
        """Index the rows that Milvus Lite buffers; they are durable and findable before."""

        def flush(client: MilvusClient) -> None:
            if self._server.is_lite:
                client.flush(name, timeout=self._timeout_s)

        await self._call(name, flush)

    async def close(self) -> None:
        await self._flusher.close()
        await asyncio.get_running_loop().run_in_executor(self._threads, self._disconnect)
        self._threads.shutdown()

    async def _call(self, name: str, work: Callable[[MilvusClient], T]) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._run, name, work)

    def _run(self, name: str, work: Callable[[MilvusClient], T]) -> T:
        try:
            client = self._connected()
            try:
                return work(client)
            except MilvusException as exc:
                if exc.code != _NOT_LOADED:
                    raise
                # A restarted Milvus Lite has its collections, but none of them in memory.
                client.load_collection(name, timeout=self._timeout_s)
                return work(client)
        except (MilvusException, grpc.RpcError) as exc:
            raise to_error(exc, self._where) from exc

    def _connected(self) -> MilvusClient:
        with self._connecting:
            if self._client is None:
                client = MilvusClient(
                    self._uri,
                    token=self._token,
                    timeout=self._timeout_s,
                    grpc_options=_KEEPALIVE,
                )
                version = str(client.get_server_version(timeout=self._timeout_s))
                self._server = Server.of(version)
                self._client = client
            return self._client

    def _disconnect(self) -> None:
        with self._connecting:
            if self._client is not None:
                self._client.close()
                self._client = None
