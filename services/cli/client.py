"""The platform's HTTP API as the commands use it."""

import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
from httpx_sse import aconnect_sse

from services.cli.errors import AwayError, CliError, ExitCode
from services.cli.settings import CliSettings

Json = dict[str, Any]
_AWAY_STATUSES = {502, 503, 504}  # our own, or a proxy's before us
_AUTH_STATUSES = {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}


class Client:
    """One connection pool to one platform. Raises: CliError (every method)."""

    def __init__(self, settings: CliSettings) -> None:
        key = settings.read_key()
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._url = settings.base_url
        self._http = httpx.AsyncClient(
            base_url=settings.base_url,
            headers=headers,
            timeout=httpx.Timeout(60.0, connect=5.0),
            trust_env=settings.url is not None,  # no proxy leads to this machine's own loopback
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._http.aclose()

    async def get(self, path: str, **parameters: Any) -> Json:
        parameters = {name: value for name, value in parameters.items() if value is not None}
        async with self._unreachable_named():
            return _json(await self._http.get(path, params=parameters))

    async def text(self, path: str, max_chars: int) -> str:
        """The first characters of a text; what comes after them is not read."""
        parts: list[str] = []
        missing = max_chars
        async with self._unreachable_named(), self._http.stream("GET", path) as response:
            if response.is_error:
                await response.aread()
                raise problem(response)
            async for part in response.aiter_text():
                parts.append(part[:missing])
                missing -= len(parts[-1])
                if not missing:
                    break
        return "".join(parts)

    async def post(self, path: str, body: Json, *, key: str | None = None) -> Json:
        """`key`: an Idempotency-Key, for requests that may be repeated."""
        headers = {"Idempotency-Key": key} if key else {}
        async with self._unreachable_named():
            return _json(await self._http.post(path, json=body, headers=headers))

    async def put(self, path: str, body: Json) -> Json:
        async with self._unreachable_named():
            return _json(await self._http.put(path, json=body))

    async def delete(self, path: str) -> Json:
        """What the answer holds; nothing for most."""
        async with self._unreachable_named():
            response = await self._http.delete(path)
        if response.is_error:
            raise problem(response)
        return _json(response) if response.content else {}

    async def upload(self, file: Path, fields: Mapping[str, str | list[str]]) -> Json:
        """Send one file; the answer is the document as accepted (or known already)."""
        async with self._unreachable_named():
            with file.open("rb") as content:
                response = await self._http.post(
                    "/v1/documents",
                    files={"file": (_name(file), content)},
                    data=fields,
                    timeout=httpx.Timeout(600.0, connect=5.0),
                )
        return _json(response)

    async def events(
        self, path: str, *, body: Json | None = None, key: str = "", after: int = 0
    ) -> AsyncGenerator[tuple[int, str, Json]]:
        """The (seq, type, data) events of a stream as they come, until it ends or breaks.

        With a `body` the stream is that of a POST, to which `key` is the Idempotency-Key.
        Raises: CliError; AwayError when it broke.
        """
        method = "GET" if body is None else "POST"
        headers = {"Idempotency-Key": key} if key else {}
        if after:
            headers["Last-Event-ID"] = str(after)
        timeout = httpx.Timeout(60.0, connect=5.0)  # a heartbeat comes at least every 15 s
        async with (
            self._unreachable_named(),
            aconnect_sse(
                self._http, method, path, json=body, headers=headers, timeout=timeout
            ) as source,
        ):
            if source.response.is_error:
                await source.response.aread()
                raise problem(source.response)
            async for event in source.aiter_sse():
                if event.data:  # a heartbeat after an event is passed on as an empty one
                    yield int(event.id), event.event, json.loads(event.data)

    async def readiness(self) -> Json:
        """`/ready` whatever its status: {"ready": bool, "missing": [...]}."""
        async with self._unreachable_named():
            response = await self._http.get("/ready")
        try:
            body = response.json()
        except ValueError:
            body = {}
        return {"ready": response.is_success, "missing": body.get("missing", [])}

    @asynccontextmanager
    async def _unreachable_named(self) -> AsyncIterator[None]:
        try:
            yield
        except (httpx.TransportError, httpx.InvalidURL) as exc:
            cut = isinstance(exc, httpx.RemoteProtocolError | httpx.ReadError)
            raise AwayError(
                f"no answer from {self._url} ({exc.__class__.__name__}): start the platform with "
                "`sluice up`, or set SLUICE_URL",
                answered=cut,
            ) from exc


def _name(file: Path) -> str:
    """The file's name as Unicode, also where the file system's is in another encoding."""
    raw = os.fsencode(file.name)
    for encoding in ("utf-8", "gb18030"):
        with suppress(UnicodeDecodeError):
            return raw.decode(encoding)
    return raw.decode("utf-8", "replace")


def problem(response: httpx.Response) -> CliError:
    """An RFC 9457 answer as a message and an exit code."""
    try:
        body = response.json()
        text = str(body.get("detail") or body.get("title") or response.reason_phrase)
    except (ValueError, AttributeError):
        text = response.reason_phrase
    if response.status_code in _AUTH_STATUSES:
        hint = "set SLUICE_API_KEY, or SLUICE_HOME to the folder that `sluice up` uses"
        return CliError(f"{text} ({hint})", ExitCode.REFUSED)
    if response.status_code in _AWAY_STATUSES:
        return AwayError(text, answered=True)
    return CliError(f"{text} (HTTP {response.status_code})", ExitCode.FAILED)


def _json(response: httpx.Response) -> Json:
    if response.is_error:
        raise problem(response)
    try:
        body: Json = response.json()
    except ValueError as exc:
        raise CliError(
            f"what answers at {response.url.host} is no Sluice: check SLUICE_URL",
            ExitCode.UNREACHABLE,
        ) from exc
    return body
