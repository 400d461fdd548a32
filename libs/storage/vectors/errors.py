"""What Milvus's errors are to the platform, and what people can do about them."""

from typing import Final

import grpc
from pymilvus import MilvusException

from libs.kernel import TransientError
from libs.storage.room import error_in_words

NAME: Final = "milvus"  # as readiness names it
_CONNECT_FAILED: Final = 2  # of the client


def to_error(exc: MilvusException | grpc.RpcError, where: str) -> TransientError:
    """`where`: the server, without a password."""
    status = _status(exc)
    if status is grpc.StatusCode.UNAUTHENTICATED:
        return TransientError(
            f"{NAME} at {where} refuses the name or password: correct MILVUS_TOKEN "
            "(`user:password`)",
            missing=NAME,
        )
    if status is grpc.StatusCode.DEADLINE_EXCEEDED:
        return TransientError(f"{NAME} at {where} did not answer in time")
    if status is grpc.StatusCode.UNAVAILABLE or getattr(exc, "code", None) == _CONNECT_FAILED:
        return TransientError(f"{NAME} at {where} cannot be reached: {exc}", missing=NAME)
    return error_in_words(f"{NAME} at {where} cannot do this now: {exc}")


def _status(exc: BaseException) -> grpc.StatusCode | None:
    """The client puts its own exception around what gRPC said at the connecting."""
    for each in (exc, exc.__cause__):
        if isinstance(each, grpc.RpcError):
            code = each.code()
            return code if isinstance(code, grpc.StatusCode) else None
    return None
