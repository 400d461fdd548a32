"""RFC 9457 problem documents: one table turns error classes into statuses.

`type` is `urn:sluice:problem:<slug>`; slugs are stable, so clients may branch on them.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from libs.kernel import (
    ConflictError,
    DiskError,
    NotFoundError,
    PermanentError,
    TransientError,
    new_id,
)
from libs.observability import tracing
from libs.storage.sql.idempotency import ReusedKeyError

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 2

_log = structlog.get_logger(__name__)


class ProblemError(HTTPException):
    """An error that a route raises to answer with a status of its own.

    Args:
        slug: Stable kebab-case code.
        detail: What is wrong and what to do about it, for a person.
    """

    def __init__(
        self, status: int, slug: str, detail: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, detail, headers)
        self.slug = slug


def unauthenticated(detail: str) -> ProblemError:
    return ProblemError(401, "unauthenticated", detail, {"WWW-Authenticate": "Bearer"})


def forbidden(detail: str) -> ProblemError:
    return ProblemError(403, "forbidden", detail)


def too_large(detail: str) -> ProblemError:
    return ProblemError(413, "too-large", detail)


def unsupported_media(detail: str) -> ProblemError:
    return ProblemError(415, "unsupported-media-type", detail)


def invalid(slug: str, detail: str) -> ProblemError:
    return ProblemError(422, slug, detail)


def rate_limited(detail: str, *, retry_after_s: int) -> ProblemError:
    return ProblemError(429, "rate-limited", detail, {"Retry-After": str(max(1, retry_after_s))})


def problem(
    status: int,
    slug: str,
    detail: str,
    *,
    headers: Mapping[str, str] | None = None,
    errors: Sequence[Mapping[str, str]] = (),
    trace_id: str | None = None,
) -> JSONResponse:
    """A problem document as a response."""
    body: dict[str, Any] = {
        "type": f"urn:sluice:problem:{slug}",
        "title": _title(slug),
        "status": status,
        "detail": detail,
    }
    if errors:
        body["errors"] = list(errors)
    if trace_id is not None:
        body["trace_id"] = trace_id
    return JSONResponse(body, status, dict(headers or {}), MEDIA_TYPE)


def install_problems(app: FastAPI) -> None:
    """Answer every error of the app with a problem document."""
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(NotFoundError, _kernel(404, "not-found", " Check the address."))
    app.add_exception_handler(ConflictError, _kernel(409, "conflict"))
    app.add_exception_handler(ReusedKeyError, _reused_key)
    app.add_exception_handler(PermanentError, _permanent)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(DiskError, _disk)
    for backend_away in (TransientError, OperationalError, InterfaceError, PoolTimeoutError):
        app.add_exception_handler(backend_away, _unavailable)
    app.add_exception_handler(Exception, _unexpected)


_KNOWN_HTTP = {
    404: ("not-found", "There is nothing at this address; /docs lists what there is."),
    405: ("method-not-allowed", "This address does not take this method; see /docs."),
    400: ("malformed-body", "The body could not be read; see /docs for its shape."),
}


async def _http(_request: Request, exc: Exception) -> JSONResponse:
    assert isinstance(exc, HTTPException)  # noqa: S101 - registered for this class alone
    if isinstance(exc, ProblemError):
        return problem(exc.status_code, exc.slug, exc.detail, headers=exc.headers)
    status = 422 if exc.status_code == 400 else exc.status_code  # the framework's unreadable body
    slug, detail = _KNOWN_HTTP.get(exc.status_code, (_phrase_slug(status), str(exc.detail)))
    return problem(status, slug, detail, headers=exc.headers)


async def _validation(_request: Request, exc: Exception) -> JSONResponse:
    assert isinstance(exc, RequestValidationError)  # noqa: S101 - registered for this class alone
    errors = [
        {"field": _sendable(".".join(map(str, error["loc"]))), "message": _sendable(error["msg"])}
        for error in exc.errors()
    ]
    if any(error["type"] == "json_invalid" for error in exc.errors()):
        slug, what = "malformed-json", "The body is not valid JSON"
    else:
        first = errors[0] if errors else {"field": "request", "message": "invalid"}
        slug, what = "invalid-request", f"{first['field']}: {first['message']}"
    return problem(422, slug, f"{what}. Correct it and send it again.", errors=errors)


def _kernel(status: int, slug: str, advice: str = "") -> Any:
    async def answer(_request: Request, exc: Exception) -> JSONResponse:
        return problem(status, slug, _sentence(exc) + advice)

    return answer


async def _reused_key(_request: Request, exc: Exception) -> JSONResponse:
    return problem(422, "idempotency-key-reused", f"{_sentence(exc)} Use a new key.")


async def _permanent(_request: Request, exc: Exception) -> JSONResponse:
    assert isinstance(exc, PermanentError)  # noqa: S101 - registered for this class alone
    return problem(422, exc.reason, exc.detail or exc.reason)


async def _gone(_request: Request, _exc: Exception) -> JSONResponse:
    return problem(499, "client-gone", "The client hung up.")  # nobody reads it; not our error


async def _unavailable(request: Request, exc: Exception) -> JSONResponse:
    trace_id = _trace_id()
    _log.warning("request_unavailable", path=request.url.path, error=repr(exc), trace_id=trace_id)
    return problem(  # the error itself may name hosts and statements: it is for the log
        503,
        "unavailable",
        "A part that this needs does not answer; /ready names what is missing. "
        "Try again in a moment.",
        headers={"Retry-After": str(RETRY_AFTER_S)},
        trace_id=trace_id,
    )


async def _disk(request: Request, exc: Exception) -> JSONResponse:
    assert isinstance(exc, DiskError)  # noqa: S101 - registered for this class alone
    trace_id = _trace_id()
    _log.warning("request_without_disk", path=request.url.path, error=repr(exc), trace_id=trace_id)
    if exc.full:
        status, slug = 507, "disk-full"
        detail = "The server's disk has no room for this, so nothing was changed. Free some space"
    else:
        status, slug = 503, "disk-not-writable"
        detail = "The server cannot use its data folder. Make the folder writable"
    return problem(
        status,
        slug,
        f"{detail} there (its log names the folder), then send the request again.",
        headers={"Retry-After": str(RETRY_AFTER_S)},
        trace_id=trace_id,
    )


async def _unexpected(request: Request, exc: Exception) -> JSONResponse:
    trace_id = _trace_id()
    _log.error("request_crashed", path=request.url.path, trace_id=trace_id, exc_info=exc)
    detail = f"Something went wrong on our side. Report the trace id {trace_id}."
    return problem(500, "internal-error", detail, trace_id=trace_id)


def _trace_id() -> str:
    context = tracing.current()
    return new_id() if context is None else context.trace_id


def _sentence(exc: Exception) -> str:
    text = str(exc) or type(exc).__name__
    text = text[0].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _sendable(text: str) -> str:
    """The text with `?` for lone surrogates: JSON may name a field so, UTF-8 has none."""
    return text.encode("utf-8", "replace").decode()


def _title(slug: str) -> str:
    return slug.replace("-", " ").capitalize()


def _phrase_slug(status: int) -> str:
    try:
        return HTTPStatus(status).phrase.lower().replace(" ", "-").replace("'", "")
    except ValueError:
        return f"status-{status}"
