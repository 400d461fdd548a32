"""Taking in an uploaded file: the same content of a tenant is one document."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

from sqlalchemy import RowMapping, insert, select, update

from libs.kernel import TransientError, made_at_us, now_us
from libs.observability.metrics import UPLOADED_BYTES
from libs.storage.keys import original_key
from libs.storage.sql.document_events import URGENT, lane_of, pending_event, uploaded_event
from libs.storage.sql.document_rows import is_document
from libs.storage.sql.document_states import RUNNING, DocumentState
from libs.storage.sql.documents import find, load, note, resume, start_generation
from libs.storage.sql.idempotency import ReusedKeyError, made_before, remember
from libs.storage.sql.tables import documents, upload_horizon
from libs.storage.sql.work import UnitOfWork

KEY_SCOPE = "documents"
RESTARTS = frozenset({DocumentState.FAILED, DocumentState.CANCELLED})


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that lies in the object store under `original_key(tenant, document_id)`."""

    document_id: str
    name: str
    media_type: str  # the client's word, a hint; the parser finds out
    size_bytes: int
    sha256: str
    domain: str = ""
    tags: Sequence[str] = ()
    priority: str = "normal"
    plan: Mapping[str, Any] | None = None


class UploadTooOldError(TransientError):
    """The upload began so long ago that its file may have been swept as an orphan's."""


class Outcome(StrEnum):
    CREATED = "created"  # the stored file is the document's original now
    RESTARTED = "restarted"  # known content whose document had failed or was cancelled
    KNOWN = "known"


async def take_in(
    sql: UnitOfWork, tenant: str, file: StoredFile, *, idempotency_key: str | None = None
) -> tuple[RowMapping, Outcome]:
    """Make the file a document, or find the one that has its content, and announce it if new.

    Safe under concurrent uploads of the same content: the second one finds the first's document,
    or fails on the unique content key (ConflictError) and finds it when tried again.
    Unless the outcome is CREATED the caller's stored file is not referenced by anything.

    Raises: ReusedKeyError; UploadTooOldError; ConflictError: somebody was faster, try again.
    """
    if made_at_us(file.document_id) < await _horizon(sql):
        raise UploadTooOldError("the upload began before the last sweep of orphans")
    known_id = await made_before(sql, tenant, KEY_SCOPE, idempotency_key)
    replayed = await find(sql, tenant, known_id) if known_id else None
    if replayed is not None:
        if replayed["sha256"] != file.sha256:
            raise ReusedKeyError("this Idempotency-Key was used for another file")
        return replayed, Outcome.KNOWN
    row, outcome = await _create_or_find(sql, tenant, file)
    await remember(sql, tenant, KEY_SCOPE, idempotency_key, row["id"])
    return row, outcome


async def close_before(sql: UnitOfWork, before_us: int) -> None:
    """From this unit's commit on no upload that began before the time becomes a document.

    Whoever removes files that no document owns says so first and then looks for the documents: an
    upload that is about to commit either is seen or is refused.
    """
    known = await sql.scalar(select(upload_horizon.c.before).with_for_update())
    if known is None:
        await sql.execute(insert(upload_horizon).values(id=1, before=before_us))
    elif known < before_us:
        await sql.execute(update(upload_horizon).values(before=before_us))


async def _horizon(sql: UnitOfWork) -> int:
    known = await sql.scalar(select(upload_horizon.c.before).with_for_update(read=True))
    if known is None:  # only a row that is there can be held against a sweep
        await sql.execute(insert(upload_horizon).values(id=1, before=0))
    return int(known or 0)


async def same_content(
    sql: UnitOfWork, tenant: str, sha256: str, *, lock: bool = False
) -> RowMapping | None:
    """The living document that has this content."""
    known = select(documents).where(documents.c.content_key == f"{tenant}:{sha256}")
    return await sql.first(known.with_for_update() if lock else known)


async def _create_or_find(
    sql: UnitOfWork, tenant: str, file: StoredFile
) -> tuple[RowMapping, Outcome]:
    known = await same_content(sql, tenant, file.sha256, lock=True)
    if known is None:
        return await _create(sql, tenant, file), Outcome.CREATED
    if known["state"] in RESTARTS:
        return await _start_again(sql, known, file), Outcome.RESTARTED
    if file.priority == URGENT != known["priority"] and known["state"] in RUNNING:
        return await _hurry(sql, known), Outcome.KNOWN
    return known, Outcome.KNOWN


async def _hurry(sql: UnitOfWork, known: RowMapping) -> RowMapping:
    """Let a document that waits among the others overtake them: its event goes by both lanes."""
    of = (known["tenant"], known["id"])
    await sql.execute(update(documents).where(is_document(*of)).values(priority=URGENT))
    row = await load(sql, *of)
    event = pending_event(row)
    if event is not None:
        await sql.emit(event, lane=URGENT)
    return row


async def _start_again(sql: UnitOfWork, known: RowMapping, file: StoredFile) -> RowMapping:
    """Go on where it failed; what could not be parsed is parsed under its new name."""
    of = (known["tenant"], known["id"])
    is_parsed = known["state"] == DocumentState.FAILED and known["stage"] != "parse"
    if is_parsed and file.plan is None:
        return await resume(sql, *of)
    if not is_parsed:
        hints = {"name": file.name, "media_type": file.media_type, "priority": file.priority}
        await sql.execute(update(documents).where(is_document(*of)).values(**hints))
    return await start_generation(sql, *of, plan=file.plan, why="uploaded again")


async def _create(sql: UnitOfWork, tenant: str, file: StoredFile) -> RowMapping:
    now = now_us()
    await sql.execute(
        insert(documents).values(
            id=file.document_id,
            tenant=tenant,
            name=file.name,
            media_type=file.media_type,
            size_bytes=file.size_bytes,
            sha256=file.sha256,
            content_key=f"{tenant}:{file.sha256}",
            object_key=original_key(tenant, file.document_id),
            domain=file.domain,
            tags=list(file.tags),
            priority=file.priority,
            plan=dict(file.plan) if file.plan is not None else None,
            state=DocumentState.UPLOADED,
            generation=1,
            counts={},
            created_at=now,
            updated_at=now,
        )
    )
    await note(sql, file.document_id, 1, DocumentState.UPLOADED, {})
    sql.when_committed.append(partial(UPLOADED_BYTES.inc, file.size_bytes))
    row = await load(sql, tenant, file.document_id)
    await sql.emit(uploaded_event(row), lane=lane_of(row["priority"]))
    return row
