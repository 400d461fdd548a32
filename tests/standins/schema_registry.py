"""A schema registry for tests: Confluent's REST API over real HTTP, in memory.

    with RegistryServer() as registry:
        ... SCHEMA_REGISTRY_URL=registry.url ...

It judges compatibility as real ones do, with Avro's own rules, and gives one id to one schema under
every subject. Like an in-memory registry it numbers anew after `forget`.
"""

import base64
import json
import threading
from dataclasses import dataclass, field
from typing import Any, Self

import avro.errors
import avro.schema
import uvicorn
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tests.ports import free_port

_CHECKED_BACKWARD = {"BACKWARD", "BACKWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE"}
_CHECKED_FORWARD = {"FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE"}


@dataclass(slots=True)
class _Contents:
    ids: dict[str, int] = field(default_factory=dict)  # canonical schema text -> id
    subjects: dict[str, list[str]] = field(default_factory=dict)  # texts, oldest first
    levels: dict[str, str] = field(default_factory=dict)


class RegistryServer:
    """The server in a thread. `requests` holds methods and paths; `user` is who is let in."""

    def __init__(self, user: tuple[str, str] | None = None, *, first_id: int = 1) -> None:
        self.user = user
        self.requests: list[str] = []
        self._first_id = first_id
        self._contents = _Contents()
        self.port = free_port()
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        who = f"{self.user[0]}:{self.user[1]}@" if self.user else ""
        return f"http://{who}{self.host}"

    def level_of(self, subject: str) -> str | None:
        return self._contents.levels.get(subject)

    def forget(self, *, first_id: int) -> None:
        """What a registry without a store does when it is started again."""
        self._contents, self._first_id = _Contents(), first_id

    def start(self) -> None:
        app = Starlette(
            routes=[
                Route("/subjects/{subject}/versions", self._register, methods=["POST"]),
                Route("/subjects/{subject}/versions/{version}", self._version),
                Route("/subjects/{subject}", self._look_up, methods=["POST"]),
                Route("/schemas/ids/{number:int}", self._by_id),
                Route("/config/{subject}", self._config, methods=["GET", "PUT"]),
            ]
        )

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                self.requests.append(f"{scope['method']} {scope['path']}")
                if not self._lets_in(dict(scope["headers"])):
                    await _error(401, 40101, "Unauthorized")(scope, receive, send)
                    return
            await app(scope, receive, send)

        config = uvicorn.Config(guarded, port=self.port, log_config=None, lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            self._thread.join(0.01)

    def stop(self) -> None:
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._server.force_exit = True
            self._thread.join(10)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _lets_in(self, headers: dict[bytes, bytes]) -> bool:
        if self.user is None:
            return True
        wanted = base64.b64encode(":".join(self.user).encode())
        return headers.get(b"authorization") == b"Basic " + wanted

    async def _register(self, request: Request) -> JSONResponse:
        subject, text = request.path_params["subject"], await _schema_in(request)
        if text is None:
            return _error(422, 42201, "Invalid schema")
        known = self._contents.subjects.setdefault(subject, [])
        if text not in known:
            level = self._contents.levels.get(subject, "BACKWARD")
            if reasons := _conflicts(text, known, level):
                said = f"Schema being registered is incompatible with an earlier schema: {reasons}"
                return _error(409, 409, said)
            known.append(text)
        ids = self._contents.ids
        return JSONResponse({"id": ids.setdefault(text, self._first_id + len(ids))})

    async def _look_up(self, request: Request) -> JSONResponse:
        subject, text = request.path_params["subject"], await _schema_in(request)
        known = self._contents.subjects.get(subject, [])
        if text is None or text not in known:
            return _error(404, 40403, "Schema not found")
        return JSONResponse(self._registered(subject, known.index(text)))

    async def _version(self, request: Request) -> JSONResponse:
        subject, version = request.path_params["subject"], request.path_params["version"]
        known = self._contents.subjects.get(subject, [])
        place = len(known) - 1 if version == "latest" else int(version) - 1
        if not 0 <= place < len(known):
            return _error(404, 40401, f"Subject '{subject}' not found.")
        return JSONResponse(self._registered(subject, place))

    def _registered(self, subject: str, place: int) -> dict[str, Any]:
        text = self._contents.subjects[subject][place]
        found = {"subject": subject, "version": place + 1, "id": self._contents.ids[text]}
        return found | {"schema": text}

    async def _by_id(self, request: Request) -> JSONResponse:
        for text, number in self._contents.ids.items():
            if number == request.path_params["number"]:
                return JSONResponse({"schema": text})
        return _error(404, 40403, f"Schema {request.path_params['number']} not found")

    async def _config(self, request: Request) -> JSONResponse:
        subject = request.path_params["subject"]
        if request.method == "PUT":
            level = self._contents.levels[subject] = (await request.json())["compatibility"]
            return JSONResponse({"compatibility": level})
        if subject not in self._contents.levels:
            said = f"Subject '{subject}' does not have subject-level compatibility configured"
            return _error(404, 40408, said)
        return JSONResponse({"compatibilityLevel": self._contents.levels[subject]})


async def _schema_in(request: Request) -> str | None:
    """The canonical text of the request's schema; None: it is no Avro schema."""
    try:
        schema = json.loads((await request.json())["schema"])
        avro.schema.parse(json.dumps(schema))
    except (ValueError, avro.errors.AvroException):
        return None
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def _conflicts(text: str, known: list[str], level: str) -> list[str]:
    earlier = known if level.endswith("TRANSITIVE") else known[-1:]
    pairs = [(text, old) for old in earlier if level in _CHECKED_BACKWARD]
    pairs += [(old, text) for old in earlier if level in _CHECKED_FORWARD]
    reasons: list[str] = []
    for reader, writer in pairs:
        checker = ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call]
        found = checker.get_compatibility(avro.schema.parse(reader), avro.schema.parse(writer))
        if found.compatibility is not SchemaCompatibilityType.compatible:
            reasons += sorted(found.messages)
    return reasons


def _error(status: int, code: int, message: str) -> JSONResponse:
    return JSONResponse({"error_code": code, "message": message}, status)
