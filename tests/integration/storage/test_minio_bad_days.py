"""A MinIO that is cut off, dies, freezes, fills up or refuses: objects are whole or not there."""

import asyncio
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from libs.kernel import DiskError, NotFoundError, TransientError
from libs.service.objects import open_objects
from libs.service.settings import PlatformSettings
from libs.storage.objects.blocks import blocks
from libs.storage.objects.s3 import S3ObjectStore
from libs.storage.objects.s3_access import S3Access, S3Policy
from libs.web import attachment
from tests.servers.frame import running
from tests.servers.minio import MinioServer, access_to, bucket_on
from tests.servers.proxy import Proxy
from tests.small_disk import small_disk
from tests.waiting import eventually, until

MB = 1_000_000
PART = 5 * 1024 * 1024  # the least that S3 takes
POLICY = S3Policy(part_bytes=PART)
IMPATIENT = S3Policy(part_bytes=PART, connect_s=1.0, silence_s=1.0, call_s=2.0, abort_s=1.0)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MinioServer]:
    """One that the tests of this module may hurt."""
    with running(MinioServer(tmp_path_factory.mktemp("hurt") / "minio")) as server:
        yield server


@pytest.fixture
async def store(server: MinioServer, proxy: Proxy) -> AsyncIterator[S3ObjectStore]:
    """Behind the proxy."""
    async with bucket_on(server, POLICY, port=proxy.port) as store:
        await store.put("t/before", b"before")
        yield store


def parts_of(server: MinioServer, store: S3ObjectStore) -> list[str]:
    """What is left of uploads that were not completed."""
    found = server.client()._list_multipart_uploads(store.access.bucket)
    return [str(upload.object_name) for upload in found.uploads]


async def in_pieces(data: bytes, size: int = MB) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


def is_part(piece: bytes) -> bool:
    return piece.startswith(b"PUT ") and b"partNumber=" in piece


DATA = random.Random(7).randbytes(18 * MB)  # noqa: S311 - any bytes


@pytest.mark.parametrize("after_mb", [3, 7, 17])
async def test_an_upload_cut_in_the_middle_leaves_nothing_and_its_repeat_is_whole(
    server: MinioServer, proxy: Proxy, store: S3ObjectStore, after_mb: int
) -> None:
    async def cut_on_the_way() -> AsyncIterator[bytes]:
        sent = 0
        async for piece in in_pieces(DATA):
            yield piece
            sent += len(piece)
            if sent == after_mb * MB:
                proxy.cut_answer_to(is_part)

    with pytest.raises(TransientError):
        await store.write("t/new", cut_on_the_way())
    assert proxy.cuts == 1
    assert await store.keys("") == ["t/before"]
    assert parts_of(server, store) == []
    assert await store.write("t/new", in_pieces(DATA)) == len(DATA)
    assert await store.get("t/new") == DATA


async def test_a_completion_whose_answer_is_lost_is_an_error_and_leaves_a_whole_object(
    server: MinioServer, proxy: Proxy, store: S3ObjectStore
) -> None:
    proxy.cut_answer_to(lambda piece: b"<CompleteMultipartUpload" in piece)
    with pytest.raises(TransientError):
        await store.write("t/new", in_pieces(DATA))
    assert proxy.cuts == 1
    assert await store.get("t/new") == DATA  # nobody knew; a repeat replaces it
    assert parts_of(server, store) == []


async def test_a_beginning_whose_answer_is_lost_is_left_to_the_sweep(
    server: MinioServer, proxy: Proxy, store: S3ObjectStore
) -> None:
    proxy.cut_answer_to(lambda piece: piece.startswith(b"POST "))
    with pytest.raises(TransientError):
        await store.write("t/new", in_pieces(DATA))
    assert await store.keys("") == ["t/before"]
    assert parts_of(server, store) == ["t/new"]  # nobody knows its id
    await sweep_at_once(store)
    assert parts_of(server, store) == []


async def test_a_cancelled_upload_leaves_nothing(server: MinioServer, store: S3ObjectStore) -> None:
    async def endless(started: asyncio.Event) -> AsyncIterator[bytes]:
        while True:
            yield bytes(MB)
            if parts_of(server, store):
                started.set()

    for _ in range(3):
        started = asyncio.Event()
        writer = asyncio.create_task(store.write("t/new", endless(started)))
        await started.wait()
        writer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writer
    assert await store.keys("") == ["t/before"]

    await until(lambda: parts_of(server, store) == [])  # one that was just beginning takes longer


async def test_nothing_appears_once_a_cancelled_write_has_ended(
    proxy: Proxy, store: S3ObjectStore
) -> None:
    for size in (1, 6 * MB):  # one call, and two parts
        started = asyncio.Event()

        def saw(piece: bytes, started: asyncio.Event = started, size: int = size) -> bool:
            if piece.startswith(b"PUT " if size == 1 else b"POST ") and b"uploads=" not in piece:
                started.set()  # what makes it visible is on its way
            return False

        proxy.cut_answer_to(saw)
        proxy.delay_s = 0.05
        writer = asyncio.create_task(store.write("t/new", in_pieces(bytes(size))))
        await started.wait()
        writer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writer
        proxy.delay_s = 0.0
        await store.delete_prefix("t/new")
        await asyncio.sleep(0.5)
        assert await store.keys("") == ["t/before"]


async def test_what_killed_processes_left_is_swept_and_nothing_younger(
    server: MinioServer, store: S3ObjectStore
) -> None:
    client = server.client()
    upload_id = client._create_multipart_upload(store.access.bucket, "t/left", {})
    client._upload_part(store.access.bucket, "t/left", bytes(PART), None, upload_id, 1)
    assert await store.sweep() == 0
    assert await sweep_at_once(store) == 1
    assert parts_of(server, store) == []


async def sweep_at_once(store: S3ObjectStore) -> int:
    hasty = S3ObjectStore(store.access, replace(POLICY, stale_s=0.0))
    count = await hasty.sweep()
    await hasty.close()
    return count


async def test_a_read_cut_in_the_middle_is_an_error_and_never_a_short_object(
    proxy: Proxy, store: S3ObjectStore
) -> None:
    await store.write("t/large", in_pieces(DATA))
    stream = store.stream("t/large")
    assert await anext(stream)
    proxy.cut()

    async def read_on() -> int:
        return sum([len(block) async for block in stream])

    with pytest.raises(TransientError):
        await read_on()
    assert await store.get("t/large") == DATA


async def test_a_server_killed_in_mid_work_loses_nothing_and_ours_goes_on_without_restart(
    server: MinioServer,
) -> None:
    acknowledged: dict[str, bytes] = {}
    async with bucket_on(server, POLICY) as store:

        async def writer(number: int) -> None:
            for n in range(12):
                data = random.Random(number * 100 + n).randbytes(300_000 if n % 4 else 6 * MB)  # noqa: S311
                if number == 0 and n == 4:
                    server.kill()
                    await asyncio.sleep(0.2)  # the others see it
                    server.start()

                async def once(key: str = f"t/{number}/{n}", data: bytes = data) -> None:
                    await store.write(key, in_pieces(data))
                    acknowledged[key] = data

                await eventually(once, on=TransientError, within_s=60)

        await asyncio.gather(*(writer(number) for number in range(4)))
        assert len(acknowledged) == 48
        assert await store.keys("") == sorted(acknowledged)
        for key, data in acknowledged.items():
            assert await store.get(key) == data


async def test_a_frozen_server_is_given_up_while_the_loop_goes_on_and_used_when_it_answers(
    server: MinioServer,
) -> None:
    async with bucket_on(server, IMPATIENT) as store:
        await eventually(lambda: store.put("t/before", b"before"), on=TransientError)
        turns = 0

        async def turn() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0.01)
                turns += 1

        turning = asyncio.create_task(turn())
        server.freeze()
        try:
            calls = [store.get("t/before") for _ in range(40)]  # more than there are threads
            calls.append(store.put("t/new", b"new"))  # type: ignore[arg-type]
            ended = await asyncio.gather(*calls, return_exceptions=True)
        finally:
            server.thaw()
            turning.cancel()
        assert {type(end) for end in ended} == {TransientError}
        assert {getattr(end, "missing", "") for end in ended} == {"objects"}
        assert turns > 20

        async def works() -> None:
            await store.put("t/new", b"new")
            assert await store.get("t/before") == b"before"

        await eventually(works, on=TransientError, within_s=60)


async def test_a_process_ends_although_a_call_hangs(server: MinioServer, tmp_path: Path) -> None:
    program = f"""
import asyncio
from libs.storage.objects.s3 import *
async def main():
    store = S3ObjectStore(S3Access({server.endpoint!r}, "test-hang", "k", "s"))
    try:
        async with asyncio.timeout(0.5):
            await store.put("t/k", b"x")
    except TimeoutError:
        print("given up", flush=True)
    await store.close()
asyncio.run(main())
"""
    server.freeze()
    try:
        began = time.monotonic()
        ended = subprocess.run(  # noqa: ASYNC221 - nothing else is to run
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
        )
        took_s = time.monotonic() - began
    finally:
        server.thaw()
    assert ended.stdout == "given up\n", ended.stderr
    assert ended.returncode == 0
    assert took_s < S3Policy().silence_s  # else it waited for the call


async def test_a_slow_server_is_used_slowly(proxy: Proxy, store: S3ObjectStore) -> None:
    proxy.delay_s = 0.01
    await store.write("t/new", in_pieces(DATA[: 6 * MB]))
    assert await store.get("t/new") == DATA[: 6 * MB]


async def test_a_store_is_named_while_its_server_refuses_and_taken_when_it_is_there(
    server: MinioServer, proxy: Proxy
) -> None:
    access = access_to(server, port=proxy.port)
    settings = PlatformSettings(
        s3_endpoint=access.endpoint,
        s3_bucket=access.bucket,
        s3_access_key=access.access_key,
        s3_secret_key=access.secret_key,
    )
    proxy.refuses = True
    said: list[str | None] = []
    async with open_objects(settings, said.append) as store:
        with pytest.raises(TransientError, match="cannot be reached"):
            await store.put("t/k", b"x")
        assert said == ["objects"] * len(said)
        proxy.refuses = False

        await until(lambda: said[-1] is None, within_s=60)
        await store.put("t/k", b"x")


async def test_a_full_server_says_so_loses_nothing_and_writes_when_there_is_room(
    tmp_path: Path,
) -> None:
    with (
        small_disk(tmp_path / "disk", size_mb=256) as disk,
        running(MinioServer(disk.folder / "minio")) as server,
    ):
        async with bucket_on(server, POLICY) as store:
            await store.put("t/old", b"old")
            disk.fill(leave_bytes=MB)
            for data in (DATA[: 2 * MB], DATA):
                with pytest.raises(DiskError, match="full") as caught:
                    await store.write("t/new", in_pieces(data))
                assert caught.value.full
            assert await store.keys("") == ["t/old"]
            assert await store.get("t/old") == b"old"
            assert parts_of(server, store) == []
            disk.make_room()

            async def works() -> None:
                await store.write("t/new", in_pieces(DATA))

            await eventually(works, on=TransientError, within_s=60)
            assert await store.get("t/new") == DATA


async def test_a_link_gives_one_object_to_anybody_for_its_time(server: MinioServer) -> None:
    access = replace(access_to(server), public_endpoint=f"http://localhost:{server.port}")
    store = S3ObjectStore(access, POLICY)
    key, media_type = "t/d 1/合同", "application/pdf"
    await store.put(key, b"data")
    disposition = attachment("合同 1.pdf")
    async with httpx.AsyncClient() as client:
        link = await store.link(key, disposition, media_type)
        assert link is not None
        assert link.startswith(f"http://localhost:{server.port}/{access.bucket}/")
        answer = await client.get(link)
        assert answer.content == b"data"
        assert answer.headers["content-disposition"] == disposition
        assert answer.headers["content-type"] == media_type
        assert (await client.get(link.replace("%E5%90%88", "%E5%90%89"))).status_code == 403
        assert (await client.delete(link)).status_code == 403

        # Signed with whole seconds: one of so short a time is not sure to work even once.
        brief = S3ObjectStore(access, replace(POLICY, link_s=2.0))
        passing = await brief.link(key, disposition, media_type)
        assert passing is not None

        async def has_expired() -> bool:
            refusal = await client.get(passing)
            return refusal.status_code == 403 and b"Request has expired" in refusal.content

        await until(has_expired, within_s=60)
    await brief.close()
    await store.close()


@pytest.mark.parametrize("wrong", [{"access_key": "nobody"}, {"secret_key": "not it"}])
async def test_a_wrong_key_is_an_error_that_says_what_to_set(
    server: MinioServer, wrong: dict[str, str]
) -> None:
    store = S3ObjectStore(replace(access_to(server), **wrong))
    with pytest.raises(TransientError, match="S3_ACCESS_KEY") as caught:
        await store.get("t/k")
    assert caught.value.missing == "objects"
    assert "not it" not in str(caught.value)
    await store.close()


async def test_a_bucket_that_anybody_may_read_is_not_used_until_it_is_private(
    server: MinioServer,
) -> None:
    access = access_to(server)
    client = server.client()
    client.make_bucket(access.bucket)
    client.set_bucket_policy(access.bucket, _public(access))
    store = S3ObjectStore(access)
    for use in (store.put("t/k", b"secret"), store.get("t/k"), store.keys("")):
        with pytest.raises(TransientError, match=r"s3:GetObject.*mc anonymous set none"):
            await use
    assert list(client.list_objects(access.bucket)) == []
    client.delete_bucket_policy(access.bucket)
    await store.put("t/k", b"secret")
    client.set_bucket_policy(access.bucket, _public(access))
    with pytest.raises(TransientError, match="s3:GetObject"):
        await store.check()  # as its watcher does
    with pytest.raises(TransientError, match="s3:GetObject"):
        await store.get("t/k")
    await store.close()


def _public(access: S3Access) -> str:
    return (
        '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": ["*"]},'
        f' "Action": ["s3:GetObject"], "Resource": ["arn:aws:s3:::{access.bucket}/*"]}}]}}'
    )


async def test_a_bucket_that_is_gone_is_not_taken_for_missing_objects(
    server: MinioServer,
) -> None:
    async with bucket_on(server) as store:
        await store.put("t/k", b"x")
        await store.delete_prefix("t/")
        with pytest.raises(NotFoundError):
            await store.get("t/k")
        server.client().remove_bucket(store.access.bucket)
        for use in (store.get("t/k"), store.keys(""), store.put("t/k", b"x"), store.check()):
            with pytest.raises(TransientError, match="S3_BUCKET"):
                await use
        server.client().make_bucket(store.access.bucket)
        await store.write("t/k", blocks(b"x"))
        assert await store.get("t/k") == b"x"
