"""An embedding server for tests: the OpenAI protocol over real HTTP, around any model.

    with EmbeddingServer(vectors_of_texts) as server:
        ... EMBED_BASE_URL=server.base_url ...

What goes wrong is told by `trouble`, for each request anew; it may also be changed meanwhile.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import uvicorn
from numpy.typing import NDArray
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

MODEL = "stand-in-embedding"
QUERY = "query: "
PASSAGE = "passage: "

Embed = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Trouble:
    """What becomes of a request. Without anything: the right answer, its vectors in any order."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    pause_s: float = 0.0
    raw: bytes | None = None  # this body
    changed: Callable[[list[dict[str, Any]]], Any] | None = None  # the answer's `data`
    most_chars: int | None = None  # longer texts are refused, as servers do with 400


class EmbeddingServer:
    """The server in a thread on a free port. `requests` holds the bodies it was sent."""

    def __init__(self, embed: Embed, port: int = 0) -> None:
        self.trouble: Callable[[dict[str, Any]], Trouble] = lambda _: Trouble()
        self.requests: list[dict[str, Any]] = []
        self.authorizations: list[str] = []
        self.at_a_time = 0  # requests, at most
        self._busy = 0
        self._embed = embed
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", port))
        app = Starlette(routes=[Route("/v1/embeddings", self._answer, methods=["POST"])])
        config = uvicorn.Config(app, log_level="critical", loop="asyncio", lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._socket.listen()  # connections wait in the backlog until the server runs
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(10.0)

    async def _answer(self, request: Request) -> Response:
        body = await request.json()
        self.requests.append(body)
        self.authorizations.append(request.headers.get("authorization", ""))
        self._busy += 1
        self.at_a_time = max(self.at_a_time, self._busy)
        try:
            return await self._answered(body)
        finally:
            self._busy -= 1

    async def _answered(self, body: dict[str, Any]) -> Response:
        trouble = self.trouble(body)
        await asyncio.sleep(trouble.pause_s)
        texts = body["input"]
        if trouble.raw is not None:
            return Response(trouble.raw, trouble.status, media_type="application/json")
        if trouble.status != 200:
            error = {"error": {"message": f"no; your key was {self.authorizations[-1]}"}}
            return JSONResponse(error, trouble.status, dict(trouble.headers))
        if trouble.most_chars is not None and max(map(len, texts)) > trouble.most_chars:
            return JSONResponse({"error": {"message": "maximum context length"}}, 400)
        vectors = await asyncio.to_thread(self._embed, texts)
        data: Any = [
            {"object": "embedding", "index": place, "embedding": vectors[place].tolist()}
            for place in reversed(range(len(texts)))
        ]
        if trouble.changed is not None:
            data = trouble.changed(data)
        return JSONResponse({"object": "list", "model": body["model"], "data": data, "usage": {}})


def prefixed(query: Embed, passage: Embed) -> Embed:
    """A model that has two kinds of texts, told apart by what they begin with."""

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.concatenate(
            [
                query([text.removeprefix(QUERY)])
                if text.startswith(QUERY)
                else passage([text.removeprefix(PASSAGE)])
                for text in texts
            ]
        )

    return embed
