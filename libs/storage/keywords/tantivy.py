"""`KeywordIndex` in a folder: one process writes (the indexer), any number of processes read."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import tantivy

from libs.kernel import TransientError
from libs.storage.keywords import queries
from libs.storage.keywords.group_commit import META, Delete, GroupCommit, Upsert, is_index
from libs.storage.ports import Frequencies, IndexEntry, IndexHit, IndexRow
from libs.storage.room import error_in_words, file_error

T = TypeVar("T")


PAGE: Final = 5_000


class TantivyKeywords:
    """`KeywordIndex` on tantivy: each index is a folder under `folder`.

    Reads see every finished write of any process. The writer, and with it the folder's lock, is
    taken by the first `ensure` of a `writes` instance or the first write; only `ensure` makes one.
    """

    def __init__(self, folder: Path, *, writes: bool = False) -> None:
        self._folder = folder
        self._writes = writes
        self._writers: dict[str, GroupCommit] = {}
        self._readers: dict[str, _Reader] = {}
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="keywords-reader")

    async def ensure(self, name: str) -> None:
        """Readers wait for the writer to make it: TransientError until then."""
        if self._writes:
            await self._writer(name).make()
        await self._read(name, lambda searcher: searcher.num_docs)

    async def drop(self, name: str) -> None:
        writer = self._writer(name)  # whoever asks for it later gets a new one, and no folder
        del self._writers[name]
        await writer.close()
        self._readers.pop(name, None)
        await asyncio.get_running_loop().run_in_executor(self._threads, self._remove, name)

    async def exists(self, name: str) -> bool:
        return is_index(self._folder / name)

    async def upsert(self, name: str, rows: Sequence[IndexRow]) -> None:
        if rows:
            await self._writer(name).write(Upsert(rows))

    async def delete(
        self, name: str, tenant: str, document_id: str, *, generations: range | None = None
    ) -> None:
        await self._writer(name).write(Delete(tenant, document_id, generations))

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
        ranked = queries.ranked(tenant, terms, domains, documents)
        return await self._read(name, lambda searcher: _hits(searcher, ranked, limit))

    async def count(self, name: str, tenant: str, document_id: str | None = None) -> int:
        rows = queries.rows_of(tenant, document_id)
        return await self._read(name, lambda searcher: _count(searcher, rows))

    async def entries(
        self, name: str, tenant: str, document_id: str | None = None
    ) -> AsyncIterator[list[IndexEntry]]:
        rows = queries.unranked(tenant, document_id)
        snapshot = await self._read(name, lambda searcher: searcher)
        at, page = 0, [IndexEntry("", "", 0)]
        while page:
            read = partial(_entries, snapshot, rows, at)
            page = await asyncio.get_running_loop().run_in_executor(self._threads, read)
            at += len(page)
            if page:
                yield page

    async def frequencies(self, name: str, tenant: str, terms: Sequence[str]) -> Frequencies:
        def read(searcher: Any) -> Frequencies:
            total = _count(searcher, queries.rows_of(tenant))
            rows = {term: _count(searcher, queries.rows_with(tenant, term)) for term in set(terms)}
            return Frequencies(total, rows)

        return await self._read(name, read)

    async def close(self) -> None:
        for writer in self._writers.values():
            await writer.close()
        self._writers.clear()
        self._threads.shutdown()

    def _writer(self, name: str) -> GroupCommit:
        if not self._writes:
            raise TransientError(f"keyword index {name} is open for reading only")
        return self._writers.setdefault(name, GroupCommit(self._folder / name))

    def _remove(self, name: str) -> None:
        folder = self._folder / name
        try:
            (folder / META).unlink(missing_ok=True)  # from here on it is no index, come what may
            if folder.exists():
                shutil.rmtree(folder)
        except OSError as exc:
            raise file_error(exc, f"keyword index {folder}") from exc

    async def _read(self, name: str, read: Callable[[Any], T]) -> T:
        reader = self._readers.setdefault(name, _Reader(self._folder / name))
        if len(self._readers) > 1:  # a dropped index would keep its place on the disk
            for other in [other for other in self._readers if other != name]:
                if not is_index(self._folder / other):
                    del self._readers[other]
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: read(reader.searcher()))


class _Reader:
    """Opens a folder lazily and reloads it when another process has committed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._index: Any = None
        self._seen = (0, 0)

    def searcher(self) -> Any:
        try:
            meta = (self._folder / META).stat()
            version = (meta.st_mtime_ns, meta.st_ino)
            if self._index is None:
                index = tantivy.Index.open(str(self._folder))
                index.config_reader("manual")
                self._index = index
            if version != self._seen:
                self._index.reload()
                self._seen = version
            return self._index.searcher()
        except (ValueError, OSError) as exc:
            self._index = None
            raise error_in_words(f"keyword index {self._folder} cannot be read: {exc}") from exc


def _hits(searcher: Any, query: Any, limit: int) -> list[IndexHit]:
    found = searcher.search(query, limit, count=False).hits
    hits = []
    for score, address in found:
        row = searcher.doc(address)
        chunk, document = row.get_first("chunk"), row.get_first("document")
        hits.append(IndexHit(chunk, document, row.get_first("generation"), float(score)))
    return sorted(hits, key=lambda hit: (-hit.score, hit.chunk_id))


def _entries(searcher: Any, query: Any, offset: int) -> list[IndexEntry]:
    found = searcher.search(query, PAGE, count=False, offset=offset).hits
    rows = [searcher.doc(address) for _, address in found]
    return [
        IndexEntry(row.get_first("chunk"), row.get_first("document"), row.get_first("generation"))
        for row in rows
    ]


def _count(searcher: Any, query: Any) -> int:
    return int(searcher.search(query, 1, count=True).count)
