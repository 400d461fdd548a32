"""The behaviour every object store shows. A backend's test class inherits it and opens `store`."""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

from libs.kernel import NotFoundError
from libs.storage.objects.blocks import blocks
from libs.storage.ports import ObjectStore

ODD_KEYS = [
    "acme/doc/original",
    "acme/doc/1/text.txt",
    "Acme/doc/1/text.txt",
    "acme/合同 第一章.pdf",
    "acme/𠮷😀",
    "acme/" + "长" * 300,
    "acme/a%2fb",
    "acme/a~/b",
    "acme/.hidden",
    "acme/.tmp",
    "acme/new\nline\x01",
    "acme/C:\\temp\\x",
]


class BrokenUploadError(Exception):
    pass


async def broken() -> AsyncIterator[bytes]:
    yield b"half"
    raise BrokenUploadError


class ObjectStoreSuite:
    async def test_what_is_written_is_read(self, store: ObjectStore) -> None:
        assert await store.write("t/d/original", blocks(b"ab", b"", b"c" * 700_000)) == 700_002
        assert await store.get("t/d/original") == b"ab" + b"c" * 700_000
        parts = [part async for part in store.stream("t/d/original")]
        assert b"".join(parts) == b"ab" + b"c" * 700_000
        assert max(map(len, parts)) < 700_000

    async def test_a_large_blob_comes_in_many_pieces_and_is_read_in_bounded_blocks(
        self, store: ObjectStore
    ) -> None:
        pieces = [bytes([number]) * 1_000_003 for number in range(18)]
        assert await store.write("t/large", blocks(*pieces)) == 18_000_054
        assert await store.get("t/large") == b"".join(pieces)
        sizes = [len(block) async for block in store.stream("t/large")]
        assert max(sizes) <= 1_000_000

    async def test_a_large_blob_in_one_step(self, store: ObjectStore) -> None:
        data = random.Random(1).randbytes(12_000_000)  # noqa: S311 - any bytes
        await store.put("t/large", data)
        assert await store.get("t/large") == data

    async def test_a_stream_that_breaks_late_leaves_the_old_value(self, store: ObjectStore) -> None:
        async def breaks_late() -> AsyncIterator[bytes]:
            for number in range(18):
                yield bytes([number]) * 1_000_000
            raise BrokenUploadError

        await store.put("t/k", b"old")
        with pytest.raises(BrokenUploadError):
            await store.write("t/k", breaks_late())
        assert await store.get("t/k") == b"old"

    async def test_a_stream_that_is_left_in_the_middle_keeps_nothing_busy(
        self, store: ObjectStore
    ) -> None:
        await store.put("t/k", b"x" * 5_000_000)
        for _ in range(40):  # more than there may be connections
            stream = store.stream("t/k")
            assert await anext(stream)
            await stream.aclose()  # type: ignore[attr-defined]
        assert len(await store.get("t/k")) == 5_000_000

    async def test_an_empty_blob_exists(self, store: ObjectStore) -> None:
        assert await store.write("t/empty", blocks()) == 0
        assert await store.get("t/empty") == b""
        assert [part async for part in store.stream("t/empty")] == []

    async def test_a_repeat_replaces(self, store: ObjectStore) -> None:
        await store.put("t/k", b"old and long")
        await store.put("t/k", b"new")
        assert await store.get("t/k") == b"new"
        assert await store.keys("t/") == ["t/k"]

    async def test_a_broken_stream_leaves_the_old_value(self, store: ObjectStore) -> None:
        await store.put("t/k", b"old")
        with pytest.raises(BrokenUploadError):
            await store.write("t/k", broken())
        with pytest.raises(BrokenUploadError):
            await store.write("t/new", broken())
        assert await store.get("t/k") == b"old"
        assert await store.keys("") == ["t/k"]

    async def test_missing_keys_are_not_found(self, store: ObjectStore) -> None:
        await store.put("t/d/1/text.txt", b"x")
        for key in ("t/none", "t/d", "t/d/1"):
            with pytest.raises(NotFoundError):
                await store.get(key)
            with pytest.raises(NotFoundError):
                _ = [part async for part in store.stream(key)]

    async def test_odd_keys_come_back_as_they_were(self, store: ObjectStore) -> None:
        for key in ODD_KEYS:
            await store.put(key, key.encode())
        assert await store.keys("") == sorted(ODD_KEYS)
        for key in ODD_KEYS:
            assert await store.get(key) == key.encode()

    @pytest.mark.parametrize("key", ["", "/etc/x", "a//b", "../x", "a/../../x", "a/.", "a/"])
    async def test_keys_that_could_escape_are_refused(self, store: ObjectStore, key: str) -> None:
        with pytest.raises(ValueError, match="object key"):
            await store.put(key, b"x")
        with pytest.raises(ValueError, match="object key"):
            await store.get(key)

    async def test_delete_prefix_takes_exactly_what_starts_with_it(
        self, store: ObjectStore
    ) -> None:
        for key in ("t/d/original", "t/d/1/text.txt", "t/d2/original", "u/d/original"):
            await store.put(key, b"x")
        assert await store.delete_prefix("t/d/") == 2
        assert await store.keys("") == ["t/d2/original", "u/d/original"]
        assert await store.delete_prefix("t/d") == 1
        assert await store.delete_prefix("t/nothing") == 0
        assert await store.keys("") == ["u/d/original"]

    async def test_pages_hold_exactly_the_keys_under_a_prefix(self, store: ObjectStore) -> None:
        assert [page async for page in store.pages("")] == []
        for key in ODD_KEYS:
            await store.put(key, b"x")
        for prefix in ("", "acme/", "acme/doc/1/", "acme/doc/1/te", "acme/合同", "acme/.", "none/"):
            paged = [key async for page in store.pages(prefix) for key in page]
            assert sorted(paged) == await store.keys(prefix)

    async def test_more_keys_than_fit_on_a_page(self, store: ObjectStore) -> None:
        await asyncio.gather(*(store.put(f"t/{number:04}", b"x") for number in range(120)))
        assert len(await store.keys("t/")) == 120
        assert await store.delete_prefix("t/00") == 100
        left = [key async for page in store.pages("") for key in page]
        assert (
            sorted(left) == await store.keys("t/01") == [f"t/01{number:02}" for number in range(20)]
        )

    async def test_a_sweep_takes_nothing_of_writers_at_work(self, store: ObjectStore) -> None:
        started, go_on = asyncio.Event(), asyncio.Event()

        async def slow() -> AsyncIterator[bytes]:
            yield b"x" * 9_000_000
            started.set()
            await go_on.wait()
            yield b"end"

        writer = asyncio.create_task(store.write("t/slow", slow()))
        await started.wait()
        assert await store.sweep() == 0
        go_on.set()
        assert await writer == 9_000_003
        assert (await store.get("t/slow")).endswith(b"xend")

    async def test_a_blob_that_is_replaced_while_it_is_read_is_read_whole(
        self, store: ObjectStore
    ) -> None:
        await store.put("t/k", b"a" * 3_000_000)
        stream = store.stream("t/k")
        parts = [await anext(stream)]
        await store.put("t/k", b"b" * 10)
        parts += [part async for part in stream]
        assert b"".join(parts) == b"a" * 3_000_000

    async def test_concurrent_writers_of_one_key_leave_one_whole_value(
        self, store: ObjectStore
    ) -> None:
        values = [bytes([n]) * 50_000 for n in range(10)]
        await asyncio.gather(*(store.write("t/k", blocks(v[:20_000], v[20_000:])) for v in values))
        assert await store.get("t/k") in values
