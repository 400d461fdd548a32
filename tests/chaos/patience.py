"""A client as it should be: it repeats what was not acknowledged, with the same key."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx

_AWAY = {502, 503, 504}
_PAUSE_S = 0.3
_REQUEST_S = 20.0  # a stopped process holds connections open: hang up and come back


class StuckError(AssertionError):
    """What was asked was not acknowledged however often it was repeated."""


class UnexpectedError(AssertionError):
    """An answer that nobody should get."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One server-sent event."""

    seq: int
    kind: str
    data: dict[str, Any]


@dataclass(slots=True)
class Followed:
    """A turn as its asker saw it, over however many connections."""

    turn_id: str = ""
    frames: list[Frame] = field(default_factory=list)
    connections: int = 0
    known: asyncio.Event = field(default_factory=asyncio.Event)  # set with the turn's id

    @property
    def ended(self) -> bool:
        return bool(self.frames) and self.frames[-1].kind in {"done", "error"}


class PatientClient:
    """Requests that are repeated until somebody answers."""

    def __init__(self, url: str, key: str, *, patience_s: float) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        limits = httpx.Limits(max_connections=None)
        self._http = httpx.AsyncClient(
            base_url=url, headers=headers, timeout=_REQUEST_S, limits=limits
        )
        self._patience_s = patience_s

    async def close(self) -> None:
        await self._http.aclose()

    async def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """The first answer that is not "away". Raises: StuckError."""
        deadline = self._deadline()
        while True:
            try:
                response = await self._http.request(method, path, **options)
                if response.status_code not in _AWAY:
                    return response
                last = response.text
            except httpx.TransportError as exc:
                last = repr(exc)
            await self._pause(deadline, f"{method} {path}: {last}")

    async def follow(
        self, path: str, text: str, key: str, seen: Followed, *, leaves_after: int | None = None
    ) -> None:
        """Ask, and follow the turn to its end over every cut. Raises: StuckError."""
        deadline = self._deadline()
        while not seen.ended:
            try:
                async for frame in self._connection(path, text, key, seen):
                    seen.frames.append(frame)
                    if not seen.turn_id:
                        seen.turn_id = frame.data["turn_id"]
                        seen.known.set()
                    if leaves_after == len(seen.frames):
                        break
            except httpx.TransportError as exc:
                last = repr(exc)
            else:
                last = "the stream ended early"
            if not seen.ended:
                await self._pause(deadline, f"turn {seen.turn_id or key}: {last}")

    async def _connection(
        self, path: str, text: str, key: str, seen: Followed
    ) -> AsyncIterator[Frame]:
        """One connection: asks anew with the same key, or goes on after the last event seen."""
        if seen.turn_id:
            headers = {"Last-Event-ID": str(seen.frames[-1].seq)}
            opened = self._http.stream("GET", f"/v1/turns/{seen.turn_id}/events", headers=headers)
        else:
            headers = {"Accept": "text/event-stream", "Idempotency-Key": key}
            opened = self._http.stream("POST", path, json={"text": text}, headers=headers)
        async with opened as response:
            if response.status_code in _AWAY:
                return
            if response.status_code != httpx.codes.OK:
                told = (await response.aread()).decode()
                raise UnexpectedError(f"turn {key}: {response.status_code} {told}")
            seen.connections += 1
            async for frame in _frames(response):
                yield frame

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._patience_s

    async def _pause(self, deadline: float, what: str) -> None:
        if asyncio.get_running_loop().time() > deadline:
            raise StuckError(what)
        await asyncio.sleep(_PAUSE_S)


async def _frames(response: httpx.Response) -> AsyncIterator[Frame]:
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.strip()
        elif "data" in fields:
            yield Frame(int(fields["id"]), fields["event"], json.loads(fields["data"]))
            fields = {}
        else:
            fields = {}
