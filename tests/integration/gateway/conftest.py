"""The gateway's unit stage, with a real server in front and a real ingest behind it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from services.gateway.app import create_app
from tests.integration.gateway.serving import served
from tests.unit.services.gateway.conftest import Stage, settings, stage

__all__ = ["settings", "stage"]


@dataclass
class FakeIngest:
    """Documents routes that show what reached them, and when."""

    first_bytes: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    seen: list[dict[str, Any]] = field(default_factory=list)

    async def upload(self, request: Request) -> Response:
        received = 0
        try:
            async for block in request.stream():
                received += len(block)
                self.first_bytes.set()
        except ClientDisconnect:
            self.hung_up.set()
            raise
        return JSONResponse({"received": received}, 202)

    async def refuse(self, request: Request) -> Response:
        problem = {"type": "urn:sluice:problem:too-large", "status": 413}
        return JSONResponse(problem, 413, media_type="application/problem+json")

    async def download(self, request: Request) -> Response:
        async def blocks() -> AsyncIterator[bytes]:
            yield b"first"
            await self.go_on.wait()
            yield b"second"

        return StreamingResponse(blocks(), headers={"Content-Disposition": "attachment"})

    async def events(self, request: Request) -> Response:
        async def blocks() -> AsyncIterator[bytes]:
            try:
                yield b"id: 1\n\n"
                await asyncio.Event().wait()
            finally:
                self.hung_up.set()

        return StreamingResponse(blocks(), media_type="text/event-stream")

    async def echo(self, request: Request) -> Response:
        self.seen.append(
            {
                "method": request.method,
                "path": request.scope["raw_path"].decode(),
                "query": request.url.query,
                "headers": dict(request.headers),
            }
        )
        return Response(b"", 204, headers={"X-From": "ingest"})

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/documents", self.upload, methods=["POST"]),
                Route("/v1/documents", self.echo, methods=["GET"]),
                Route("/v1/documents/refused", self.refuse, methods=["POST"]),
                Route("/v1/documents/d1/file", self.download),
                Route("/v1/documents/d1/events", self.events),
                Route("/v1/documents/{path:path}", self.echo, methods=["GET", "DELETE", "PUT"]),
            ]
        )


@dataclass
class Front:
    """The gateway as its clients reach it."""

    url: str
    stage: Stage
    ingest: FakeIngest

    def client(self, tenant: str | None = "acme", **headers: str) -> httpx.AsyncClient:
        if tenant is not None:
            headers["Authorization"] = f"Bearer {self.stage.keys[tenant]}"
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=20)


@pytest.fixture
async def front(stage: Stage) -> AsyncIterator[Front]:
    ingest = FakeIngest()
    async with served(ingest.app()) as behind, httpx.AsyncClient(base_url=behind) as client:
        stage.gateway = replace(stage.gateway, ingest=client)
        async with served(create_app(stage.gateway)) as url:
            yield Front(url, stage, ingest)
