"""What an S3 server's refusals and silences are to the platform."""

import contextlib
from collections.abc import Iterator

from minio.error import MinioException, S3Error
from urllib3.exceptions import HTTPError

from libs.kernel import DiskError, NotFoundError, TransientError
from libs.storage.room import error_in_words

MISSING = "objects"  # as readiness names the store

_FULL = frozenset({"XMinioStorageFull", "QuotaExceeded", "XMinioAdminBucketQuotaExceeded"})
_REFUSED = frozenset(
    {
        *("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch"),
        *("InvalidToken", "ExpiredToken", "AccountProblem", "AllAccessDisabled"),
    }
)


@contextlib.contextmanager
def s3_errors(endpoint: str, bucket: str, key: str = "") -> Iterator[None]:
    """Raises: NotFoundError for a key that is not there; DiskError when the server is full;
    TransientError for all else: nothing of it is a document's fault. Its text says what to set.
    """
    try:
        yield
    except S3Error as exc:
        if exc.code in {"NoSuchKey", "XMinioParentIsObject"} and key:
            raise NotFoundError(f"no object {key!r}") from exc
        raise _of_code(exc, endpoint, bucket) from exc
    except TimeoutError as exc:
        raise TransientError(f"{endpoint} does not answer in time", missing=MISSING) from exc
    except (HTTPError, OSError) as exc:
        raise TransientError(f"{endpoint} cannot be reached: {exc}", missing=MISSING) from exc
    except MinioException as exc:
        raise TransientError(f"{endpoint}: {exc}") from exc


def _of_code(exc: S3Error, endpoint: str, bucket: str) -> TransientError:
    said = f"{exc.code}: {exc.message}"
    lack = error_in_words(said)  # MinIO has a code only for a disk whose end it sees coming
    if exc.code in _FULL or isinstance(lack, DiskError):
        full = getattr(lack, "full", True)
        what = "is full" if full else "cannot write"
        return DiskError(f"the object store at {endpoint} {what} ({said})", full=full)
    if exc.code in _REFUSED:
        return TransientError(
            f"{endpoint} refuses S3_ACCESS_KEY with S3_SECRET_KEY ({said}): check both, and that "
            f"they may read and write the bucket {bucket!r} (S3_BUCKET)",
            missing=MISSING,
        )
    if exc.code == "NoSuchBucket":
        return TransientError(
            f"the bucket {bucket!r} is not at {endpoint} any more: bring it back, or set S3_BUCKET "
            "and restart",
            missing=MISSING,
        )
    if exc.code == "RequestTimeTooSkewed":
        return TransientError(
            f"the clocks of {endpoint} and of this machine differ ({said}): set them",
            missing=MISSING,
        )
    away = exc.response is not None and exc.response.status == 503  # starting, or overloaded
    return TransientError(f"{endpoint}: {said}", missing=MISSING if away else "")
