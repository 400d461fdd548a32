"""The bucket that documents are in: there, and closed to everybody without a key."""

import json
from typing import Any

import structlog
from minio import Minio
from minio.commonconfig import ENABLED
from minio.error import S3Error

from libs.kernel import TransientError
from libs.storage.objects.s3_errors import MISSING

log = structlog.get_logger(__name__)


def open_bucket(client: Minio, bucket: str) -> None:
    """Blocking: make the bucket unless it is there, see that it is private, warn of the rest.

    Raises: as `check_bucket`.
    """
    if not client.bucket_exists(bucket):
        try:
            client.make_bucket(bucket)
            log.info("bucket_made", bucket=bucket)
        except S3Error as exc:
            if exc.code != "BucketAlreadyOwnedByYou":  # another process was quicker
                raise
    if not check_bucket(client, bucket):
        log.warning("bucket_policy_unknown", bucket=bucket, advice="grant s3:GetBucketPolicy")
    if _keeps_versions(client, bucket):
        advice = "it is versioned: expire noncurrent versions by a lifecycle rule"
        log.warning("bucket_keeps_deleted_documents", bucket=bucket, advice=advice)


def check_bucket(client: Minio, bucket: str) -> bool:
    """Blocking: see that the bucket answers and is private; False: its policy may not be read.

    Raises: S3Error; TransientError for a bucket that anybody may use without a key.
    """
    try:
        granted = public_actions(client.get_bucket_policy(bucket))
    except S3Error as exc:
        if exc.code == "AccessDenied":
            client.bucket_exists(bucket)  # raises unless the key is good for something
            return False
        if exc.code != "NoSuchBucketPolicy":
            raise
        return True
    if granted:
        raise TransientError(
            f"anybody may use the bucket {bucket!r} without a key ({', '.join(granted)}), and it "
            "holds all tenants' documents: remove that from its policy (MinIO: `mc anonymous set "
            "none`), or set S3_BUCKET to a private one",
            missing=MISSING,
        )
    return True


def public_actions(policy: str) -> list[str]:
    """What a bucket's policy (JSON) lets anybody do without a key, unconditionally."""
    statements = json.loads(policy).get("Statement", [])
    if isinstance(statements, dict):
        statements = [statements]
    return sorted(
        {
            action
            for statement in statements
            if statement.get("Effect") == "Allow" and not statement.get("Condition")
            if _is_everybody(statement.get("Principal"))
            for action in _listed(statement.get("Action") or "all but NotAction")
        }
    )


def _keeps_versions(client: Minio, bucket: str) -> bool:
    try:
        return bool(client.get_bucket_versioning(bucket).status == ENABLED)
    except S3Error:  # the key may not ask
        return False


def _is_everybody(principal: Any) -> bool:
    if isinstance(principal, dict):
        return any("*" in _listed(who) for who in principal.values())
    return bool(principal == "*")


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)
