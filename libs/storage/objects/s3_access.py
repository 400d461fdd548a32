"""Where a bucket is, how long its calls may take, and clients for it."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from minio import Minio
from minio.helpers import check_bucket_name
from urllib3 import PoolManager, Timeout


@dataclass(frozen=True, slots=True)
class S3Access:
    """Where the bucket is, and the key to it."""

    endpoint: str  # http(s)://host[:port]
    bucket: str
    access_key: str
    secret_key: str = field(repr=False)
    public_endpoint: str = ""  # where clients of ours reach it; '': they do not


@dataclass(frozen=True, slots=True)
class S3Policy:
    """Bounds of the store's calls.

    Args:
        part_bytes: An object up to this is sent in one call; a larger one in parts of it, each of
            which is in memory while it is gathered and sent. S3 takes at least 5 MiB.
        connect_s, silence_s: How long the server may take to take a connection, and to send or
            take the next bytes.
        call_s: How long one call may take, with the bytes of a part.
        abort_s: How long a failed write waits until its parts are gone, and a cancelled one for
            what it has begun; sweeps come later.
        link_s: How long a link can be used.
        threads: Calls at a time.
        page_keys: Keys looked at or deleted at a time; S3 takes at most 1000.
        stale_s: After this an upload in parts is taken for one whose process died.
    """

    part_bytes: int = 8 * 1024 * 1024
    connect_s: float = 5.0
    silence_s: float = 20.0
    call_s: float = 60.0
    abort_s: float = 5.0
    link_s: float = 60.0
    threads: int = 16
    page_keys: int = 1_000
    stale_s: float = 24 * 3600.0


def new_http(policy: S3Policy) -> PoolManager:
    return PoolManager(
        timeout=Timeout(connect=policy.connect_s, read=policy.silence_s),
        maxsize=policy.threads,
        retries=False,  # whoever called repeats the whole of its work
    )


def new_client(
    endpoint: str, access: S3Access, http: PoolManager, region: str | None = None
) -> Minio:
    """Raises: ValueError, with what to set."""
    variable = "S3_ENDPOINT" if endpoint == access.endpoint else "S3_PUBLIC_ENDPOINT"
    parts = urlsplit(endpoint)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path.strip("/"):
        raise ValueError(f"{variable}={endpoint!r} is no address such as http://minio:9000")
    try:
        check_bucket_name(access.bucket, strict=True)
    except ValueError as exc:
        raise ValueError(f"S3_BUCKET={access.bucket!r} is no bucket's name: {exc}") from exc
    key, secure = (access.access_key, access.secret_key), parts.scheme == "https"
    try:
        return Minio(parts.netloc, *key, secure=secure, region=region, http_client=http)
    except ValueError as exc:
        raise ValueError(f"{variable}={endpoint!r}: {exc}") from exc
