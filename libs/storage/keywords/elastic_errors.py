"""What Elasticsearch's errors are to the platform, and what people can do about them."""

from collections.abc import Mapping
from typing import Any, Final

from elasticsearch import ApiError, ConnectionTimeout, TransportError, UnsupportedProductError

from libs.kernel import DiskError, PermanentError, SluiceError, TransientError

NAME: Final = "elasticsearch"  # as readiness names it
AGAIN: Final = frozenset({429, 502, 503, 504})  # the server asks for a repeat
_READ_ONLY: Final = "read-only-allow-delete"  # the block that the flood-stage watermark sets


def to_error(exc: ApiError | TransportError, where: str) -> TransientError:
    """`where`: the server, without a password."""
    if isinstance(exc, UnsupportedProductError):
        return _missing(f"what answers at {where} is not Elasticsearch: correct ELASTICSEARCH_URL")
    if isinstance(exc, ConnectionTimeout):
        return TransientError(f"{NAME} at {where} did not answer in time")
    if isinstance(exc, TransportError):
        return _missing(f"{NAME} at {where} cannot be reached: {exc.message}")
    match exc.status_code:
        case 401:
            text = "refuses the name or password: correct them in ELASTICSEARCH_URL"
            return _missing(f"{NAME} at {where} {text} ({_reason(exc.body)})")
        case 403 if not is_blocked(exc.body):
            text = "does not allow this: its user needs the privileges monitor, for the cluster,"
            return _missing(f"{NAME} at {where} {text} and all, for chunks_* ({_reason(exc.body)})")
        case 400 | 406 if _is_other_version(exc.body):
            text = f"is not Elasticsearch 8 or 9: use one of these ({_reason(exc.body)})"
            return _missing(f"what answers at {where} {text}")
        case status:
            return refused(status, exc.body, where)


def refused(status: int, body: object, where: str) -> TransientError:
    """A request, or one of a bulk, that another time may be done."""
    reason = _reason(body)
    if is_blocked(body):
        return DiskError(
            f"{NAME} at {where} takes no writes, as its disk is nearly full (flood-stage "
            f"watermark): make room there, then it goes on by itself ({reason})"
        )
    text = f"{NAME} at {where} cannot do this now: {status} {reason}"
    return _missing(text) if status in (502, 503, 504) else TransientError(text)


def refused_row(status: int, error: object, chunk_id: str, where: str) -> SluiceError:
    """One row of a bulk that was not written."""
    if status == 400:
        return PermanentError(
            "row-refused",
            f"The keyword index refuses chunk {chunk_id}: {_reason(error)}. The index does not fit "
            "this version of Sluice, or was changed by hand: run `sluice reindex`.",
        )
    return refused(status, error, where)


def _missing(text: str) -> TransientError:
    return TransientError(text, missing=NAME)


def is_blocked(body: object) -> bool:
    """Its disk is too full: rows are not written, nor deleted, until there is room."""
    return _READ_ONLY in str(body)


def _is_other_version(body: object) -> bool:
    """It does not know the version that answers are asked in; servers before 8 say it otherwise."""
    return "media_type_header_exception" in str(body) or "Content-Type header" in str(body)


def _reason(body: object) -> str:
    """What the server says, with the cause that lies deepest."""
    error: Any = body
    if isinstance(error, Mapping) and "error" in error:
        error = error["error"]
    if not isinstance(error, Mapping):
        return str(error)
    said = [str(error.get("reason") or error.get("type") or error)]
    causes = error.get("root_cause") or [error.get("caused_by")]
    said += [str(cause["reason"]) for cause in causes if cause and cause.get("reason")]
    return ": ".join(dict.fromkeys(said))
