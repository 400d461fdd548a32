"""An upload, from the request's bytes to a document: in bounded memory, all or nothing.

The file goes straight to its final key under a new document id; then one unit of work makes it
a document. What no document came to own is removed at once, or by the orphan sweep after a crash.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import orjson
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from sqlalchemy import RowMapping
from starlette.requests import Request

from libs.kernel import ConflictError, Principal, TransientError, new_id
from libs.storage.keys import document_prefix, original_key
from libs.storage.sql.idempotency import ReusedKeyError
from libs.storage.sql.uploads import (
    Outcome,
    StoredFile,
    UploadTooOldError,
    same_content,
    take_in,
)
from libs.web import ProblemError, clean_name, invalid, too_large
from libs.web.multipart import MultipartReader, Part
from services.ingest.api.deps import Ingest
from services.ingest.api.schemas import UploadForm

_FORM_OVERHEAD_BYTES = 1_000_000
_ROOM_EVERY_BYTES = 4_000_000  # how much of a file is taken in before the disk is asked again
_TRIES = 3  # concurrent uploads of one content: the loser finds the winner's document


@dataclass(slots=True)
class _Received:
    name: str
    media_type: str
    size_bytes: int = 0
    digest: Any = field(default_factory=hashlib.sha256)


async def upload(
    request: Request, principal: Principal, ingest: Ingest, idempotency_key: str | None
) -> tuple[RowMapping, Outcome]:
    """Store the request's file and make it a document, or find the one it is already.

    Raises: ProblemError 413, 415, 422; TransientError; DiskError; ClientDisconnect.
    """
    declared = _declared_size(request, ingest.max_upload_bytes)
    await _check_room(ingest, declared)
    tenant, document_id = principal.tenant, new_id()
    try:
        file = await _receive(request, tenant, document_id, ingest)
        await _restore_original(ingest, tenant, file)
    except BaseException:
        await asyncio.shield(_drop(ingest, tenant, document_id))
        raise
    # From here on only a decided outcome removes the file: a commit may go through although its
    # answer is lost. The orphan sweep settles that case.
    try:
        row, outcome = await _take_in(ingest, tenant, file, idempotency_key)
    except ReusedKeyError as exc:
        await _drop(ingest, tenant, document_id)
        raise invalid("idempotency-key-reused", f"{exc}: use a new key for a new file.") from exc
    except UploadTooOldError as exc:
        await _drop(ingest, tenant, document_id)
        detail = "The upload was held up for too long and was given up: send the file again."
        raise ProblemError(503, "upload-held-up", detail, {"Retry-After": "1"}) from exc
    if outcome is not Outcome.CREATED:
        await _drop(ingest, tenant, document_id)
    return row, outcome


async def _restore_original(ingest: Ingest, tenant: str, file: StoredFile) -> None:
    """Give a document whose original got lost this one: its content is the same."""
    async with ingest.db.reading() as sql:
        known = await same_content(sql, tenant, file.sha256)
    if known is not None and not await ingest.objects.keys(known["object_key"]):
        copy = ingest.objects.stream(original_key(tenant, file.document_id))
        await ingest.objects.write(known["object_key"], copy)


async def _drop(ingest: Ingest, tenant: str, document_id: str) -> None:
    with suppress(TransientError):  # the orphan sweep comes by later
        await ingest.objects.delete_prefix(document_prefix(tenant, document_id))


async def _receive(request: Request, tenant: str, document_id: str, ingest: Ingest) -> StoredFile:
    reader = MultipartReader(request.headers.get("content-type", ""), request.stream())
    fields: dict[str, list[str]] = {}
    received: _Received | None = None
    while (part := await reader.next_part()) is not None:
        if part.filename is None and part.name != "file":
            fields.setdefault(part.name, []).append(await reader.text())
            continue
        if part.name != "file" or received is not None:
            raise invalid("one-file", "Send exactly one file, in the part named `file`.")
        received = _Received(clean_name(part.filename), _media_type(part))
        pieces = _measured(reader.data(), received, ingest)
        await ingest.objects.write(original_key(tenant, document_id), pieces)
    if received is None:
        raise invalid("missing-file", "Send the file in a multipart part named `file`.")
    form = _form(fields)
    return StoredFile(
        document_id=document_id,
        name=received.name,
        media_type=received.media_type,
        size_bytes=received.size_bytes,
        sha256=received.digest.hexdigest(),
        domain=form.domain,
        tags=form.tags,
        priority=form.priority,
        plan=form.plan.fields() if form.plan is not None else None,
    )


async def _measured(
    pieces: AsyncIterator[bytes], received: _Received, ingest: Ingest
) -> AsyncIterator[bytes]:
    asked_at = 0
    async for piece in pieces:
        received.size_bytes += len(piece)
        if received.size_bytes > ingest.max_upload_bytes:
            raise _over(ingest.max_upload_bytes)
        if received.size_bytes - asked_at > _ROOM_EVERY_BYTES:  # others upload at the same time
            asked_at = received.size_bytes
            await _check_room(ingest)
        received.digest.update(piece)
        yield piece


async def _check_room(ingest: Ingest, wanted_bytes: int = 0) -> None:
    if ingest.room is not None:
        await asyncio.to_thread(ingest.room.check, wanted_bytes)


async def _take_in(
    ingest: Ingest, tenant: str, file: StoredFile, idempotency_key: str | None
) -> tuple[RowMapping, Outcome]:
    for _ in range(_TRIES - 1):
        with suppress(ConflictError):
            return await _take_in_once(ingest, tenant, file, idempotency_key)
    return await _take_in_once(ingest, tenant, file, idempotency_key)


async def _take_in_once(
    ingest: Ingest, tenant: str, file: StoredFile, idempotency_key: str | None
) -> tuple[RowMapping, Outcome]:
    async with ingest.db.work() as sql:
        return await take_in(sql, tenant, file, idempotency_key=idempotency_key)


def _form(fields: dict[str, list[str]]) -> UploadForm:
    """The validated form fields. Raises: RequestValidationError."""
    raw: dict[str, Any] = {name: values[-1] for name, values in fields.items() if name != "tags"}
    raw["tags"] = [
        tag.strip() for value in fields.get("tags", []) for tag in value.split(",") if tag.strip()
    ]
    try:
        if "plan" in raw:
            raw["plan"] = orjson.loads(raw["plan"])
    except orjson.JSONDecodeError as exc:
        raise invalid("malformed-json", f"The field `plan` is not valid JSON: {exc}.") from exc
    try:
        return UploadForm.model_validate(raw)
    except ValidationError as exc:
        errors = [{**error, "loc": ("body", *error["loc"])} for error in exc.errors()]
        raise RequestValidationError(errors) from exc


def _media_type(part: Part) -> str:
    """The client's word for it, only a hint: the parser looks at the content."""
    hint = part.media_type.split(";")[0].strip().lower()
    plain = len(hint) <= 100 and hint.isascii() and hint.isprintable() and hint.count("/") == 1
    return hint if plain else "application/octet-stream"


def _declared_size(request: Request, max_bytes: int) -> int:
    """The body's bytes as announced; 0: not announced."""
    declared = request.headers.get("content-length", "")
    size_bytes = int(declared) if declared.isdecimal() else 0
    if size_bytes > max_bytes + _FORM_OVERHEAD_BYTES:
        raise _over(max_bytes)
    return size_bytes


def _over(max_bytes: int) -> Exception:
    return too_large(f"A file has at most {max_bytes} bytes: split it. (SLUICE_MAX_UPLOAD_BYTES)")
