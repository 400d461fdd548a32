"""What every operation may answer beside its own: written once, into the OpenAPI document."""

from collections.abc import Iterable, Iterator
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from libs.web.problems import MEDIA_TYPE

_REF = "#/components/schemas/{model}"
_FRAMEWORKS_OWN = ("HTTPValidationError", "ValidationError")  # ours are problems
_MEANINGS = {
    401: "No valid API key",
    403: "The key's role, the page's origin or the Host does not allow this",
    404: "Unknown here (another tenant's ids are, too)",
    408: "The body came too slowly",
    409: "Contradicts the current state",
    413: "Too large",
    415: "Another media type is needed",
    422: "Not understood; `errors` or `detail` says what to change",
    429: "Too many requests; see Retry-After",
    500: "Our fault; report the trace id",
    503: "A backend is away; see Retry-After",
    507: "No room on the server's disk; nothing was changed",
}
_HEADERS = {401: "WWW-Authenticate", 429: "Retry-After", 503: "Retry-After", 507: "Retry-After"}


class FieldProblem(BaseModel):
    field: str
    message: str


class Problem(BaseModel):
    """RFC 9457. `type` is stable: `urn:sluice:problem:<slug>`."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[FieldProblem] = []
    trace_id: str | None = None


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """OpenAPI `responses` of a route for the statuses that only its own rules can give.

    Those that follow from its key, its body and its path are added to every route.
    """
    return {status: _response(status) for status in sorted(statuses)}


def install_openapi(app: FastAPI) -> None:
    """Complete the app's OpenAPI document."""
    made_by_the_framework = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            _complete(made_by_the_framework())
        return made_by_the_framework()

    app.openapi = openapi  # type: ignore[method-assign]


def _complete(document: dict[str, Any]) -> None:
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for name in _FRAMEWORKS_OWN:
        schemas.pop(name, None)
    models = [(model, "serialization") for model in (Problem, FieldProblem)]
    schemas.update(models_json_schema(models, ref_template=_REF)[1]["$defs"])  # type: ignore[arg-type]
    for path, method, operation in _operations(document):
        responses = operation["responses"]
        if _is_frameworks_own(responses.get("422")):
            del responses["422"]
        for status in _common(path, method, operation):
            responses.setdefault(str(status), _response(status))
        operation["responses"] = dict(sorted(responses.items()))


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield path, method, operation


def _common(path: str, method: str, operation: dict[str, Any]) -> Iterable[int]:
    yield 403  # a Host that is not served here
    yield 500
    if operation.get("security"):
        yield from (401, 503)
        if method != "get":
            yield 507
    if "{" in path:
        yield 404
    if "requestBody" in operation:
        yield from (408, 413, 422)
    if any(parameter["in"] != "path" for parameter in operation.get("parameters", ())):
        yield 422


def _is_frameworks_own(response: dict[str, Any] | None) -> bool:
    return response is not None and MEDIA_TYPE not in response.get("content", {})


def _response(status: int) -> dict[str, Any]:
    content = {MEDIA_TYPE: {"schema": {"$ref": _REF.format(model="Problem")}}}
    response: dict[str, Any] = {"description": _MEANINGS[status], "content": content}
    if status in _HEADERS:
        response["headers"] = {_HEADERS[status]: {"schema": {"type": "string"}}}
    return response
