"""Documents live behind the ingest API; the gateway passes bytes on, both ways, as they come."""

from urllib.parse import quote

import httpx
from fastapi import APIRouter, Request

from libs.kernel import NotFoundError
from libs.web import PresentedKey, ProblemError, Reader
from services.gateway.deps import GatewayDep
from services.gateway.streaming import BoundedStream

router = APIRouter(tags=["documents"])

# Headers that belong to one connection (RFC 9110, 7.6.1), or that the other side sets itself.
_HOP_BY_HOP = frozenset(
    [
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "expect",
        "host",
    ]
)
# The key that was judged here is sent on, and no other: ingest might judge by another one.
_KEYS = frozenset({"authorization", "cookie", "x-api-key"})

_ASCII = "".join(map(chr, range(0x21, 0x7F)))
_AWAY = "The service for documents did not answer. Nothing was lost; send the request again."
_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]


@router.api_route("/v1/documents", methods=_METHODS, include_in_schema=False)
@router.api_route("/v1/documents/{path:path}", methods=_METHODS, include_in_schema=False)
async def pass_on(
    request: Request, gateway: GatewayDep, _caller: Reader, key: PresentedKey
) -> BoundedStream:
    """Send the request to ingest and its answer back. A client that hangs up ends both sides."""
    try:
        answer = await gateway.ingest.send(
            _outgoing(request, gateway.ingest.base_url, key), stream=True
        )
    except httpx.TransportError as exc:
        raise ProblemError(503, "ingest-away", _AWAY, {"Retry-After": "2"}) from exc
    return BoundedStream(
        answer.aiter_raw(),
        answer.aclose,
        status_code=answer.status_code,
        headers={k: v for k, v in answer.headers.items() if k not in _HOP_BY_HOP},
    )


def _outgoing(request: Request, base: httpx.URL, key: str) -> httpx.Request:
    if not {".", ".."}.isdisjoint(request.scope["path"].split("/")):
        raise NotFoundError("an address with dots for a part leads nowhere")  # and never out
    target = request.scope["raw_path"]
    if query := request.scope["query_string"]:
        target += b"?" + query
    has_body = "content-length" in request.headers or "transfer-encoding" in request.headers
    return httpx.Request(
        request.method,
        base.copy_with(raw_path=quote(target, safe=_ASCII).encode()),
        headers=_headers(request, key),
        content=request.stream() if has_body else None,
    )


def _headers(request: Request, key: str) -> list[tuple[bytes, bytes]]:
    """As they came, in bytes (they need not be ASCII), with the one key."""
    dropped = _HOP_BY_HOP | _KEYS
    headers = [(k, v) for k, v in request.headers.raw if k.decode("latin-1") not in dropped]
    return [*headers, (b"authorization", f"Bearer {key}".encode("latin-1"))]
