"""An upload in parts, as S3 has it. Every method blocks.

The client's own `put_object` takes a stream, but holds a thread for as long as whoever sends it
takes, so a few slow uploads would keep all others out. Hence its steps, one call each.
"""

from datetime import datetime
from typing import Self

from minio import Minio
from minio.datatypes import Part
from minio.error import MinioException, S3Error

_UPLOADS_AT_A_TIME = 1_000


class Multipart:
    """Nothing of it can be seen before `complete`; `abort` removes what was sent.

    Raises (every method): what the client raises.
    """

    def __init__(self, client: Minio, bucket: str, name: str, upload_id: str) -> None:
        self._client = client
        self._of = (bucket, name, upload_id)
        self._parts: list[Part] = []

    @classmethod
    def begin(cls, client: Minio, bucket: str, name: str) -> Self:
        return cls(client, bucket, name, client._create_multipart_upload(bucket, name, {}))

    def send(self, data: bytes) -> None:
        """The next part."""
        bucket, name, upload_id = self._of
        number = len(self._parts) + 1
        etag = self._client._upload_part(bucket, name, data, None, upload_id, number)
        self._parts.append(Part(number, etag))

    def complete(self) -> None:
        done = self._client._complete_multipart_upload(*self._of, self._parts)
        if not done.etag:  # S3 begins its 200 before it knows, and then sends an error in it
            raise MinioException("the parts of an upload were not put together")

    def abort(self) -> None:
        try:
            self._client._abort_multipart_upload(*self._of)
        except S3Error as exc:
            if exc.code != "NoSuchUpload":
                raise


def stale_uploads(client: Minio, bucket: str, before: datetime) -> list[Multipart]:
    """Uploads that began before a time and were neither completed nor aborted."""
    found = client._list_multipart_uploads(bucket, max_uploads=_UPLOADS_AT_A_TIME)
    return [
        Multipart(client, bucket, str(upload.object_name), str(upload.upload_id))
        for upload in found.uploads
        if upload.initiated_time is not None and upload.initiated_time < before
    ]
