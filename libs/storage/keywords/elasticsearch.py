"""`KeywordIndex` on Elasticsearch: any number of processes read and write."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from elastic_transport import AsyncTransport
from elasticsearch import (
    ApiError,
    AsyncElasticsearch,
    BadRequestError,
    NotFoundError,
    TransportError,
)

from libs.kernel import TransientError, to_its_end
from libs.observability import redacted
from libs.storage.keywords import elastic_index as shape
from libs.storage.keywords.elastic_bulk import write_rows
from libs.storage.keywords.elastic_errors import NAME, refused, to_error
from libs.storage.ports import Frequencies, IndexEntry, IndexHit, IndexRow

T = TypeVar("T")

PAGE: Final = 5_000
COMPATIBLE_WITH: Final = 8  # what both 8.x and 9.x servers answer to
_SNAPSHOT_LIVES: Final = "2m"  # between two pages
_DELETES_WITHIN_S: Final = 60.0


class ElasticsearchKeywords:
    """`KeywordIndex` over the server at `url`, which holds the name and password.

    Each index is an alias of one that is named `<name>-1`: writes that require an alias never make
    an index. Terms come analysed and are only parted at blanks. Scores are of the whole index, as
    shards are asked for their frequencies first.
    """

    def __init__(self, url: str, *, timeout_s: float = 10.0) -> None:
        """`url`: several of one cluster are parted by commas."""
        urls = [part.strip() for part in url.split(",")]
        self._where = redacted(", ".join(urls))
        self._timeout_s = timeout_s
        # As OpenSSL does: certificates of the system, or of SSL_CERT_FILE.
        secure = all(part.startswith("https:") for part in urls)
        tls: dict[str, Any] = {"ssl_context": ssl.create_default_context()} if secure else {}
        self._client = AsyncElasticsearch(
            urls,
            transport_class=_Transport,
            request_timeout=timeout_s,
            max_retries=1,  # a connection that the server closed while it was idle
            retry_on_status=(),
            **tls,
        )

    async def ensure(self, name: str) -> None:
        async def ensure() -> None:
            await self._client.info()  # says in words that it is another product or version
            if not await self._client.indices.exists_alias(name=name):
                await self._make(name)
            health = await self._client.options(ignore_status=408).cluster.health(
                index=name, wait_for_status="yellow", timeout="1s"
            )
            if health["status"] == "red":
                raise TransientError(
                    f"keyword index {name} of {NAME} at {self._where} is red, so that some of it "
                    "cannot be read: GET _cluster/allocation/explain says why",
                    missing=NAME,
                )

        await self._call(ensure)

    async def drop(self, name: str) -> None:
        async def drop() -> None:
            try:
                behind = await self._client.indices.get_alias(name=name)
            except NotFoundError:
                return
            await self._client.indices.delete(index=sorted(behind), ignore_unavailable=True)

        await self._call(drop)

    async def exists(self, name: str) -> bool:
        return bool(await self._call(partial(self._client.indices.exists_alias, name=name)))

    async def upsert(self, name: str, rows: Sequence[IndexRow]) -> None:
        shard_s = self._timeout_s / 2
        write = partial(write_rows, self._client, name, rows, self._where, timeout_s=shard_s)
        await to_its_end(self._call(write))

    async def search(
        self,
        name: str,
        tenant: str,
        query: Sequence[str],
        limit: int,
        *,
        domains: Sequence[str] = (),
        documents: Sequence[str] = (),
    ) -> list[IndexHit]:
        terms = list(dict.fromkeys(query))
        if not terms or limit < 1:
            return []
        found = await self._search(
            index=name,
            query=shape.ranked(tenant, terms, domains, documents),
            size=limit,
            docvalue_fields=shape.FIELDS,
            track_total_hits=False,
            # Replicas rank a little differently: one tenant always asks the same one.
            preference=shape.row_id(tenant, ""),
        )
        hits = map(shape.to_hit, found["hits"]["hits"])
        return sorted(hits, key=lambda hit: (-hit.score, hit.chunk_id))

    async def delete(
        self, name: str, tenant: str, document_id: str, *, generations: range | None = None
    ) -> None:
        slow = self._client.options(request_timeout=_DELETES_WITHIN_S)

        async def delete() -> None:
            # What was written and has not been acknowledged, as its answer was lost, goes as well.
            await slow.indices.refresh(index=name)
            conflicts = True
            while conflicts:  # rows that were written again meanwhile
                done = await slow.delete_by_query(
                    index=name,
                    query=shape.rows_of(tenant, document_id, generations),
                    conflicts="proceed",
                    refresh=True,
                )
                for failure in done["failures"]:
                    raise refused(failure["status"], failure["cause"], self._where)
                conflicts = bool(done["version_conflicts"])

        await self._call(delete)

    async def count(self, name: str, tenant: str, document_id: str | None = None) -> int:
        found = await self._search(
            index=name, query=shape.rows_of(tenant, document_id), size=0, track_total_hits=True
        )
        return int(found["hits"]["total"]["value"])

    async def entries(
        self, name: str, tenant: str, document_id: str | None = None
    ) -> AsyncIterator[list[IndexEntry]]:
        """What a snapshot of now holds; more than two minutes between two pages end it.

        Raises: TransientError.
        """
        open_snapshot = partial(
            self._client.open_point_in_time,
            index=name,
            keep_alive=_SNAPSHOT_LIVES,
        )
        snapshot = (await self._call(open_snapshot))["id"]
        after: Mapping[str, Any] = {}
        try:
            while True:
                found = await self._search(
                    pit={"id": snapshot, "keep_alive": _SNAPSHOT_LIVES},
                    query=shape.rows_of(tenant, document_id),
                    size=PAGE,
                    sort=["_shard_doc"],
                    docvalue_fields=shape.FIELDS,
                    track_total_hits=False,
                    **after,
                )
                snapshot, page = found["pit_id"], found["hits"]["hits"]
                if page:
                    yield [shape.to_entry(each) for each in page]
                if len(page) < PAGE:
                    return
                after = {"search_after": page[-1]["sort"]}
        finally:
            await self._forget(snapshot)

    async def frequencies(self, name: str, tenant: str, terms: Sequence[str]) -> Frequencies:
        asked = list(dict.fromkeys(terms))
        found = await self._search(
            index=name,
            query=shape.rows_of(tenant),
            size=0,
            track_total_hits=True,
            **({"aggregations": {"rows": shape.rows_with(asked)}} if asked else {}),
        )
        counted = found["aggregations"]["rows"]["buckets"] if asked else []
        rows = {term: int(of["doc_count"]) for term, of in zip(asked, counted, strict=True)}
        return Frequencies(int(found["hits"]["total"]["value"]), rows)

    async def close(self) -> None:
        await self._client.close()

    async def _make(self, name: str) -> None:
        try:
            await self._client.indices.create(
                index=f"{name}-1",
                aliases={name: {"is_write_index": True}},
                settings={"index": shape.SETTINGS},
                mappings=shape.MAPPINGS,
                timeout=f"{int(self._timeout_s * 500)}ms",  # for its shards; then it is red
            )
        except BadRequestError as exc:
            if exc.error != "resource_already_exists_exception":  # another one made it just now
                raise

    async def _forget(self, snapshot: str) -> None:
        """It ends by itself as well; a lost one is no reason to fail."""
        try:
            await self._client.close_point_in_time(id=snapshot)
        except (ApiError, TransportError):
            return

    async def _search(self, **asked: Any) -> Any:
        """A search of every shard: one that does not answer must not hide what it holds."""
        if "pit" not in asked:
            asked["search_type"] = "dfs_query_then_fetch"
        whole = partial(
            self._client.search, source=False, allow_partial_search_results=False, **asked
        )
        return await self._call(whole)

    async def _call(self, work: Callable[[], Awaitable[T]]) -> T:
        try:
            return await work()
        except (ApiError, TransportError) as exc:
            raise to_error(exc, self._where) from exc


class _Transport(AsyncTransport):
    """Asks for answers as version 8 gives them: a client of 9 is otherwise refused by it."""

    async def perform_request(  # type: ignore[override] # as the async one of the library itself
        self, method: str, target: str, **options: Any
    ) -> Any:
        headers = {
            name: value.replace("compatible-with=9", f"compatible-with={COMPATIBLE_WITH}")
            for name, value in options.pop("headers").items()
        }
        return await super().perform_request(method, target, headers=headers, **options)
