"""Objects in a bucket of MinIO or another S3 server."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from io import BytesIO
from itertools import islice
from typing import Any, TypeVar

import structlog
from minio import Minio
from minio.datatypes import Object
from minio.deleteobjects import DeleteError, DeleteObject
from urllib3 import BaseHTTPResponse

from libs.kernel import TransientError, look_at, to_its_end
from libs.storage.objects.blocks import BLOCK_BYTES, blocks
from libs.storage.objects.daemons import DaemonCalls
from libs.storage.objects.multipart import Multipart, stale_uploads
from libs.storage.objects.s3_access import S3Access, S3Policy, new_client, new_http
from libs.storage.objects.s3_bucket import check_bucket, open_bucket
from libs.storage.objects.s3_errors import s3_errors
from libs.storage.objects.s3_names import key_to_name, name_to_key, prefix_to_name

log = structlog.get_logger(__name__)

T = TypeVar("T")


class S3ObjectStore:
    """`ObjectStore` over a bucket, which the first use makes unless it is there.

    A server makes an object visible when the last byte of it has come, so a reader sees the old
    value or the new one. The client is a blocking one: its calls run in threads, each with limits.
    """

    def __init__(self, access: S3Access, policy: S3Policy | None = None) -> None:
        """Raises: ValueError: the endpoint or the bucket's name is none."""
        self._policy = policy = policy or S3Policy()
        self.access = access
        self._bucket = access.bucket
        self._http = new_http(policy)
        self._client = new_client(access.endpoint, access, self._http)
        self._public: Minio | None = None  # signs for the public endpoint, and calls nobody
        if access.public_endpoint:
            new_client(access.public_endpoint, access, self._http)
        self._calls = DaemonCalls(policy.threads)
        self._checking: asyncio.Task[None] | None = None
        self._opened = False  # once, in this process
        self._usable = False  # as last seen

    async def write(self, key: str, chunks: AsyncIterator[bytes]) -> int:
        name = key_to_name(key)
        await self._ready()
        gathered = bytearray()
        upload: Multipart | None = None
        size_bytes = 0
        try:
            async for chunk in chunks:
                size_bytes += len(chunk)
                gathered += chunk
                while len(gathered) > self._policy.part_bytes:  # so the last one is never empty
                    part = _cut(gathered, self._policy.part_bytes)
                    upload = upload or await self._begin(name)
                    await self._call(partial(upload.send, part))
            if upload is None:
                await self._put(name, bytes(gathered))
            else:
                await self._call(partial(upload.send, bytes(gathered)))
                await self._to_its_end(upload.complete)
        except BaseException:
            if upload is not None:
                await self._abort(upload)
            raise
        return size_bytes

    async def put(self, key: str, data: bytes) -> None:
        await self.write(key, blocks(data))

    async def get(self, key: str) -> bytes:
        return b"".join([block async for block in self.stream(key)])

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        open_it = partial(self._client.get_object, self._bucket, key_to_name(key))
        await self._ready()
        response = await self._call(open_it, key=key, undo=_hang_up)
        try:
            while block := await self._call(partial(response.read, BLOCK_BYTES), key=key):
                yield block
        finally:
            self._calls.forget(partial(_hang_up, response))  # a read that hangs holds it up

    async def link(self, key: str, disposition: str, media_type: str) -> str | None:
        if not self.access.public_endpoint:
            return None
        name = key_to_name(key)
        await self._ready()
        headers = {
            "response-content-disposition": disposition,
            "response-content-type": media_type,
            "response-cache-control": "private, no-store",
        }
        return await self._call(partial(self._signed, name, headers))

    async def delete_prefix(self, prefix: str) -> int:
        count = 0
        async for names in self._names(prefix):
            errors = await self._call(partial(self._delete, names))
            if errors:
                said = f"{errors[0].name} ({errors[0].code}: {errors[0].message})"
                raise TransientError(f"{len(errors)} objects were not deleted: {said}")
            count += len(names)
        return count

    async def keys(self, prefix: str) -> list[str]:
        return sorted([key async for page in self.pages(prefix) for key in page])

    async def pages(self, prefix: str) -> AsyncIterator[list[str]]:
        async for names in self._names(prefix):
            yield [name_to_key(name) for name in names]

    async def sweep(self) -> int:
        await self._ready()
        before = datetime.now(UTC) - timedelta(seconds=self._policy.stale_s)
        uploads = await self._call(partial(stale_uploads, self._client, self._bucket, before))
        for upload in uploads:
            await self._call(upload.abort)
        return len(uploads)

    async def check(self) -> None:
        """See that the bucket is there and private; the first time, make it.

        Until it is so every other method asks again first, and raises the same.

        Raises: TransientError, whose text says what to do.
        """
        if self._checking is None or self._checking.done():
            self._checking = asyncio.create_task(self._check())
            self._checking.add_done_callback(look_at)
        await asyncio.shield(self._checking)

    async def close(self) -> None:
        """Calls that run are not waited for."""
        if self._checking is not None:
            self._checking.cancel()
        self._calls.forget(self._http.clear)

    async def _check(self) -> None:
        look = check_bucket if self._opened else open_bucket
        try:
            await self._call(partial(look, self._client, self._bucket))
        except TransientError:
            self._usable = False
            raise
        self._opened = self._usable = True

    async def _ready(self) -> None:
        if not self._usable:
            await self.check()

    async def _call(
        self,
        call: Callable[[], T],
        *,
        key: str = "",
        within_s: float | None = None,
        undo: Callable[[T], Any] | None = None,
    ) -> T:
        with s3_errors(self.access.endpoint, self._bucket, key):
            return await self._calls.run(call, within_s=within_s or self._policy.call_s, undo=undo)

    async def _begin(self, name: str) -> Multipart:
        begin = partial(Multipart.begin, self._client, self._bucket, name)
        return await self._call(begin, undo=Multipart.abort)

    async def _abort(self, upload: Multipart) -> None:
        try:
            await self._call(upload.abort, within_s=self._policy.abort_s)
        except TransientError as exc:
            log.warning("upload_left_for_the_sweep", error=str(exc))

    async def _put(self, name: str, data: bytes) -> None:
        put = partial(self._client.put_object, self._bucket, name, BytesIO(data), len(data))
        await self._to_its_end(partial(put, part_size=self._policy.part_bytes))

    async def _to_its_end(self, call: Callable[[], Any]) -> None:
        """What makes an object visible."""
        await to_its_end(self._call(call), within_s=self._policy.abort_s)

    async def _names(self, prefix: str) -> AsyncIterator[list[str]]:
        await self._ready()
        found = self._client.list_objects(self._bucket, prefix_to_name(prefix), recursive=True)
        while page := await self._call(partial(_page, found, self._policy.page_keys)):
            yield page

    def _signed(self, name: str, headers: dict[str, str]) -> str:
        if self._public is None:  # the region is asked of the endpoint that we reach ourselves
            region = self._client._get_region(self._bucket)
            self._public = new_client(self.access.public_endpoint, self.access, self._http, region)
        expires = timedelta(seconds=self._policy.link_s)
        return self._public.presigned_get_object(
            self._bucket, name, expires, response_headers=dict(headers)
        )

    def _delete(self, names: Sequence[str]) -> list[DeleteError]:
        return list(self._client.remove_objects(self._bucket, map(DeleteObject, names)))


def _cut(gathered: bytearray, size_bytes: int) -> bytes:
    """Take so many bytes from the front, with one copy of them."""
    with memoryview(gathered) as view:
        part = bytes(view[:size_bytes])
    del gathered[:size_bytes]
    return part


def _page(found: Iterator[Object], size: int) -> list[str]:
    return [str(entry.object_name) for entry in islice(found, size)]


def _hang_up(response: BaseHTTPResponse) -> None:
    """Close the connection, or give it back when all was read."""
    response.close()
    response.release_conn()
