"""A schema registry with Confluent's REST API: it gives our schemas their ids, and knows others."""

import json
from collections.abc import Iterator
from typing import Any, Self

import httpx
import structlog

from libs.contracts.codec import REGISTRY, UnknownSchemaError
from libs.contracts.store import SchemaStore, SchemaVersion
from libs.contracts.topics import load_topics
from libs.kernel import PermanentError, TransientError

log = structlog.get_logger(__name__)

COMPATIBILITY = "FULL_TRANSITIVE"
USER_REFUSED = f"{REGISTRY}: user refused, check SCHEMA_REGISTRY_URL"

_CONTENT = "application/vnd.schemaregistry.v1+json"
_TIMEOUT_S = 10.0
_NOT_COMPATIBLE, _INVALID = 409, 422


class SchemaRegistry:
    """The registry at a URL, which may hold a user and a password."""

    def __init__(self, url: str, *, timeout_s: float = _TIMEOUT_S) -> None:
        """Raises: PermanentError (`registry-settings`)."""
        address = _address(url)
        user = (address.username, address.password) if address.username else None
        self.host = address.netloc.decode()
        self._http = httpx.AsyncClient(
            base_url=address.copy_with(username=None, password=None),
            auth=user,
            timeout=timeout_s,
            headers={"Accept": _CONTENT, "Content-Type": _CONTENT},
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def register(self, store: SchemaStore) -> dict[int, SchemaVersion]:
        """Every committed version under TopicNameStrategy, oldest first; safe to repeat.

        Returns: what each of the registry's ids means. The base topic's come first.

        Raises: PermanentError (`schema-refused`) with the registry's own words; TransientError.
        """
        ids: dict[int, SchemaVersion] = {}
        for subject, topic in _subjects():
            await self._demand_compatibility(subject)
            for version in store.versions(topic):
                ids.setdefault(await self._register(subject, version), version)
        log.info("schemas_registered", registry=self.host, ids=len(ids))
        return ids

    async def schema(self, schema_id: int) -> Any:
        """The schema of an id, as JSON. Raises: UnknownSchemaError, TransientError."""
        answer = await self._request("GET", f"/schemas/ids/{schema_id}")
        if answer.status_code == httpx.codes.NOT_FOUND:
            raise UnknownSchemaError(schema_id, "is the id of no schema in the registry")
        return json.loads(self._accepted(answer)["schema"])

    async def _demand_compatibility(self, subject: str) -> None:
        found = await self._request("GET", f"/config/{subject}")
        if found.is_success and found.json().get("compatibilityLevel") == COMPATIBILITY:
            return
        wanted = {"compatibility": COMPATIBILITY}
        self._accepted(await self._request("PUT", f"/config/{subject}", wanted))

    async def _register(self, subject: str, version: SchemaVersion) -> int:
        body = {"schemaType": "AVRO", "schema": json.dumps(version.schema, ensure_ascii=False)}
        answer = await self._request("POST", f"/subjects/{subject}/versions", body)
        if answer.status_code in (_NOT_COMPATIBLE, _INVALID):
            said = _message(answer)
            detail = f"the registry at {self.host} refuses {version.name} as {subject}: {said}"
            raise PermanentError("schema-refused", detail)
        return int(self._accepted(answer)["id"])

    async def _request(self, method: str, path: str, body: Any = None) -> httpx.Response:
        try:
            answer = await self._http.request(method, path.lstrip("/"), json=body)
        except httpx.HTTPError as exc:
            said = f"no schema registry at {self.host}: {exc or type(exc).__name__}"
            raise TransientError(said, missing=REGISTRY) from exc
        if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            raise TransientError(
                f"the registry at {self.host} answers {answer.status_code}", missing=USER_REFUSED
            )
        return answer

    def _accepted(self, answer: httpx.Response) -> Any:
        """The body. Anything else than success may be another thing later: it is waited for."""
        if not answer.is_success:
            said = f"{answer.status_code} {_message(answer)}"
            raise TransientError(f"the registry at {self.host} answers {said}", missing=REGISTRY)
        try:
            return answer.json()
        except ValueError as exc:
            said = f"what answers at {self.host} is no schema registry"
            raise TransientError(said, missing=REGISTRY) from exc


def _subjects() -> Iterator[tuple[str, str]]:
    """Subjects and their topics, base topics before lanes: what the base has is what is written."""
    topics = load_topics().values()
    yield from ((f"{topic.name}-value", topic.name) for topic in topics)
    for topic in topics:
        yield from ((f"{topic.lane(lane)}-value", topic.name) for lane in topic.lanes)


def _address(url: str) -> httpx.URL:
    wanted = "SCHEMA_REGISTRY_URL must be like https://user:password@host:8081"
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL as exc:
        raise PermanentError("registry-settings", wanted) from exc
    if address.scheme not in ("http", "https") or not address.host:
        raise PermanentError("registry-settings", wanted)
    return address


def _message(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        return answer.text[:300]
