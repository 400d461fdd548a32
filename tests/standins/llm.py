"""A model server for tests: the OpenAI chat-completions protocol over real HTTP, from scenes.

    with LlmServer([Scene(["The limit is 20,000 yuan [1]."])]) as server:
        ... LLM_BASE_URL=server.base_url ...

Each request takes the next scene; the last one is used again for all that follow. A function in
place of the scenes is asked for each request's scene with its body.
"""

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

MODEL = "stand-in"


@dataclass(frozen=True, slots=True)
class Scene:
    """How the server answers one request.

    A JSON-schema request gets `pieces` joined as its content, so a plan is one piece of JSON text.
    """

    pieces: Sequence[str] = ()  # of the answer, each a delta of its own
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    pause_s: float = 0.0  # before each piece
    first_pause_s: float = 0.0  # before the response begins
    cut_after: int | None = None  # pieces, then the connection is closed in mid-answer
    hang_after: int | None = None  # pieces, then nothing more comes
    malformed_after: int | None = None  # pieces, then a line that is no JSON
    raw: bytes | None = None  # this body and nothing else
    finish_reason: str = "stop"
    usage: tuple[int, int] = (120, 24)  # prompt and completion tokens


def rate_limited(retry_after_s: float) -> Scene:
    return Scene(status=429, headers={"retry-after": str(retry_after_s)})


def plan(**fields: Any) -> Scene:
    """A JSON-schema answer."""
    return Scene([json.dumps(fields, ensure_ascii=False)])


class LlmServer:
    """The server in a thread on a free port. `requests` holds the bodies it was sent."""

    def __init__(self, scenes: Sequence[Scene] | Callable[[dict[str, Any]], Scene]) -> None:
        self._direct = scenes if callable(scenes) else None
        self._scenes = [] if callable(scenes) else list(scenes)
        self.requests: list[dict[str, Any]] = []
        self.authorizations: list[str] = []
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        app = Starlette(
            routes=[
                Route("/v1/chat/completions", self._complete, methods=["POST"]),
                Route("/v1/models", self._models),
            ]
        )
        config = uvicorn.Config(app, log_level="critical", loop="asyncio", lifespan="off")
        self._server = uvicorn.Server(config)
        self._closing = threading.Event()
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"

    def play(self, *scenes: Scene) -> None:
        """Scenes from now on, in place of what was left."""
        self._scenes = list(scenes)

    def __enter__(self) -> Self:
        self._socket.listen()  # connections wait in the backlog until the server runs
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(5)
        self._socket.close()

    def _next_scene(self, body: dict[str, Any]) -> Scene:
        if self._direct is not None:
            return self._direct(body)
        return self._scenes.pop(0) if len(self._scenes) > 1 else self._scenes[0]

    async def _models(self, _: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": MODEL, "object": "model"}]})

    async def _complete(self, request: Request) -> Response:
        body = await request.json()
        self.requests.append(body)
        self.authorizations.append(request.headers.get("authorization", ""))
        scene = self._next_scene(body)
        await self._pause(scene.first_pause_s)
        if scene.raw is not None:
            media = "text/event-stream" if body.get("stream") else "application/json"
            return Response(scene.raw, scene.status, scene.headers, media)
        if scene.status != 200:
            error = {"message": f"refused {request.headers.get('authorization')}", "type": "x"}
            return JSONResponse({"error": error}, scene.status, scene.headers)
        if body.get("stream"):
            return StreamingResponse(self._stream(scene), media_type="text/event-stream")
        if scene.hang_after is not None:
            await self._pause(3600)
        return JSONResponse(_whole(scene))

    async def _stream(self, scene: Scene) -> AsyncIterator[bytes]:
        for i, piece in enumerate(scene.pieces):
            if scene.hang_after == i:
                await self._pause(3600)
            if scene.malformed_after == i:
                yield b"data: {not json\n\n"
            if scene.cut_after == i:
                raise ConnectionError("scripted cut")
            await self._pause(scene.pause_s)
            yield _data({"choices": [{"index": 0, "delta": {"content": piece}}]})
        yield _data({"choices": [{"index": 0, "delta": {}, "finish_reason": scene.finish_reason}]})
        yield _data({"choices": [], "usage": _usage(scene)})
        yield b"data: [DONE]\n\n"

    async def _pause(self, seconds: float) -> None:
        waited_s = 0.0
        while waited_s < seconds and not self._closing.is_set():
            step_s = min(0.05, seconds - waited_s)
            await asyncio.sleep(step_s)
            waited_s += step_s


def _whole(scene: Scene) -> dict[str, Any]:
    message = {"role": "assistant", "content": "".join(scene.pieces)}
    choice = {"index": 0, "message": message, "finish_reason": scene.finish_reason}
    return {**_envelope("chat.completion"), "choices": [choice], "usage": _usage(scene)}


def _data(fields: dict[str, Any]) -> bytes:
    chunk = {**_envelope("chat.completion.chunk"), **fields}
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode()


def _envelope(kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 0, "model": MODEL}


def _usage(scene: Scene) -> dict[str, int]:
    prompt, completion = scene.usage
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
