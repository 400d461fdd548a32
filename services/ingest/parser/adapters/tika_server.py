"""A Tika server (2 or 3), asked by the child process that reads a file.

`PUT /tika/xml` gives one document with what is embedded in it in place, as the native build does.
A file that cannot be parsed is a bare 422 there, so that `PUT /rmeta/ignore` is asked for the
reason: it has the stack trace in its answer.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

from libs.kernel import TransientError
from services.ingest.parser.adapters.extraction import ExtractionError, Metadata
from services.ingest.parser.adapters.tika_check import MISSING
from services.ingest.parser.domain.refusals import refusal

_CONTENT = "X-TIKA:content"
_EXCEPTION = "X-TIKA:EXCEPTION:container_exception"
_LIMIT_REACHED = "X-TIKA:EXCEPTION:write_limit_reached"
_PIECE_CHARS = 64 * 1024
_MARGIN_S = 5.0  # of the child's time: for what is done with the answer
_SPARE_BYTES = 16_000_000  # metadata and tags of an answer without much text
_CONNECT_S = 5.0
_HEADERS = {
    "Accept": "application/json",
    "Content-Type": "application/octet-stream",  # it finds out by itself
    # Scans are recognised here, page by page.
    "X-Tika-OCRskipOcr": "true",
    "X-Tika-PDFOcrStrategy": "no_ocr",
}


class TikaServer:
    """`Extractor` over HTTP.

    Args:
        left_s: How long this process may still work on its file, in seconds.
    """

    def __init__(self, url: str, left_s: Callable[[], float]) -> None:
        self._url = url.rstrip("/")
        self._left_s = left_s
        self._client = httpx.Client(trust_env=False)

    def extract(self, path: Path, max_chars: int) -> tuple[Iterator[bytes], Metadata]:
        # Its count has the white space between elements in it, which no text has in the end.
        limit = str(2 * max_chars + _SPARE_BYTES)
        answer = self._put("tika/xml", path, max_bytes=8 * max_chars + _SPARE_BYTES, limit=limit)
        metadata = _listed(answer)
        if metadata.get(_LIMIT_REACHED) == ["true"]:
            raise refusal("too-large")
        if failures := metadata.get(_EXCEPTION):  # of a server that returns stack traces
            raise ExtractionError(failures[0])
        return _pieces("".join(metadata.pop(_CONTENT, ()))), metadata

    def complaint(self, path: Path, max_chars: int) -> str:
        answer = self._put("rmeta/ignore", path, max_bytes=8 * max_chars + _SPARE_BYTES)
        if not isinstance(answer, list) or not answer:
            raise TransientError(f"{self._url} answers /rmeta with something else")
        return " ".join(_listed(answer[0]).get(_EXCEPTION, ()))

    def hides_failures(self, media_type: str) -> bool:  # noqa: ARG002
        return False

    def _put(self, endpoint: str, path: Path, *, max_bytes: int, limit: str = "") -> Any:
        """The JSON answer. Raises: as `extract`."""
        left_s = self._left_s() - _MARGIN_S
        if left_s <= 0:
            raise refusal("parse-timeout")
        headers = _HEADERS | {"Content-Disposition": f'attachment; filename="{path.name}"'}
        if limit:
            headers["writeLimit"] = limit
        try:
            with (
                path.open("rb") as file,
                self._client.stream(
                    "PUT",
                    f"{self._url}/{endpoint}",
                    content=iter(lambda: file.read(256 * 1024), b""),
                    headers=headers,
                    timeout=httpx.Timeout(left_s, connect=_CONNECT_S),
                ) as answer,
            ):
                body = _whole(answer, max_bytes)
                status = answer.status_code
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.InvalidURL) as exc:
            raise TransientError(f"no Tika server at {self._url}: {exc}", missing=MISSING) from exc
        except httpx.TimeoutException as exc:
            self._blame(exc)
        except httpx.HTTPError as exc:  # it may be this file that ends the server
            raise TransientError(f"the Tika server broke off: {exc!r}") from exc
        return _judged(status, body, self._url)

    def _blame(self, exc: Exception) -> None:
        """Raises: PermanentError when the server works, and only this file takes too long."""
        try:
            self._client.get(f"{self._url}/version", timeout=_CONNECT_S / 2).raise_for_status()
        except httpx.HTTPError:
            text = f"the Tika server at {self._url} hangs"
            raise TransientError(text, missing=MISSING) from exc
        raise refusal("parse-timeout") from exc


def _whole(answer: httpx.Response, max_bytes: int) -> bytes:
    body = bytearray()
    for piece in answer.iter_bytes():
        body += piece
        if len(body) > max_bytes:
            raise refusal("too-large")
    return bytes(body)


def _judged(status: int, body: bytes, url: str) -> Any:
    if status == 503:
        raise TransientError(f"the Tika server at {url} restarts (503)", missing=MISSING)
    if status in (422, 415):
        raise ExtractionError(body[:1000].decode(errors="replace"))
    if status == 413:
        raise refusal("too-large")
    if status != 200:
        raise TransientError(f"the Tika server at {url} answers {status}")
    try:
        return json.loads(body)
    except ValueError as exc:
        raise TransientError(f"the Tika server at {url} answers no JSON") from exc


def _listed(fields: Any) -> dict[str, list[str]]:
    """Tika writes a single value as itself."""
    if not isinstance(fields, dict):
        raise TransientError("the Tika server answers with something else")
    return {
        str(key): [str(value) for value in (values if isinstance(values, list) else [values])]
        for key, values in fields.items()
    }


def _pieces(content: str) -> Iterator[bytes]:
    for at in range(0, len(content), _PIECE_CHARS):
        yield content[at : at + _PIECE_CHARS].encode("utf-8", "replace")
