"""/v1/documents: take files in, show how they fare, change and delete them."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response

from libs.kernel import Principal
from libs.storage.sql import alike, documents, pages
from libs.storage.sql.document_states import FINAL
from libs.storage.sql.uploads import Outcome
from libs.web import IdempotencyKey, Member, Reader, problems, while_valid
from libs.web.sse import last_event_id, stream
from services.ingest.api import planning, previewing, progress, resuming, views
from services.ingest.api.cursors import cursor_of, position
from services.ingest.api.deps import Ingest, IngestDeps
from services.ingest.api.schemas import (
    Accepted,
    DocumentList,
    DocumentView,
    ListedState,
    PlanPreview,
    PlanRequest,
    PlanView,
)
from services.ingest.api.uploading import upload

router = APIRouter(prefix="/v1/documents", tags=["documents"])

_FORM: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "domain": {"type": "string", "maxLength": 64},
                        "tags": {"type": "string", "description": "comma-separated or repeated"},
                        "priority": {"enum": ["normal", "urgent"], "default": "normal"},
                        "plan": {"type": "string", "description": "a PlanRequest as JSON"},
                    },
                }
            }
        },
    }
}


@router.post(
    "",
    status_code=202,
    response_model=Accepted,
    responses={200: {"model": Accepted, "description": "Known content"}, **problems(409, 415)},
    openapi_extra=_FORM,
)
async def upload_document(
    request: Request,
    response: Response,
    principal: Member,
    ingest: IngestDeps,
    idempotency_key: IdempotencyKey = None,
) -> Accepted:
    """Upload a file. The same content of a tenant is one document: known content answers 200.

    Content whose document failed or was cancelled is tried again (202): from the stage that failed,
    or, when it was not parsed or a plan is given, as the next generation. Known content that is
    still waiting goes ahead when it is uploaded again as urgent. An empty file is accepted
    and fails with the reason `empty`, so that batches add up.
    """
    row, outcome = await upload(request, principal, ingest, idempotency_key)
    response.headers["Location"] = f"/v1/documents/{row['id']}"
    if outcome is Outcome.KNOWN:
        response.status_code = 200
    return views.accepted(row)


@router.get("")
async def list_documents(
    principal: Reader,
    ingest: IngestDeps,
    state: ListedState | None = None,
    domain: Annotated[str | None, Query(max_length=64)] = None,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> DocumentList:
    """Documents, newest first, in pages: pass `next` as `cursor` for the next one."""
    async with ingest.db.reading() as sql:
        rows = await pages.documents_page(
            sql,
            principal.tenant,
            before=position(cursor),
            state=state,
            domain=domain,
            limit=limit + 1,
        )
        shown, more = rows[:limit], len(rows) > limit
        marks = await alike.alike(sql, principal.tenant, [row["id"] for row in shown])
    return DocumentList(
        items=[views.summary(row, marks.get(row["id"])) for row in shown],
        next=cursor_of(shown[-1]) if more else None,
    )


@router.get("/{document_id}")
async def get_document(document_id: str, principal: Reader, ingest: IngestDeps) -> DocumentView:
    """A document with its state, counts and timeline."""
    return await _view(ingest, principal, document_id)


@router.delete("/{document_id}", status_code=204)
async def delete_document(document_id: str, principal: Member, ingest: IngestDeps) -> None:
    """Delete a document: not found by anything from now on, then removed from every store.

    Safe to repeat; once its last trace is gone the answer is 404.
    """
    async with ingest.db.work() as sql:
        await documents.tombstone(sql, principal.tenant, document_id)


@router.get(
    "/{document_id}/events",
    response_class=Response,
    responses={
        200: {"content": {"text/event-stream": {}}, "description": "The timeline, live"},
        204: {"description": "Nothing comes after Last-Event-ID: do not reconnect"},
    },
)
async def document_events(
    document_id: str,
    principal: Reader,
    ingest: IngestDeps,
    last_event_id_: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
) -> Response:
    """Progress as server-sent events, resumed by Last-Event-ID, until the state is final."""
    after = last_event_id(last_event_id_)
    async with ingest.db.reading() as sql:
        await documents.load(sql, principal.tenant, document_id)
    entries, state = await progress.news(ingest.db, principal.tenant, document_id, after)
    if not entries and (state is None or state in FINAL):
        return Response(status_code=204)
    poll_s = ingest.progress_poll_s
    events = progress.follow(ingest.db, principal.tenant, document_id, after, poll_s=poll_s)
    return stream(while_valid(events, ingest.db, principal))


@router.post("/{document_id}/reparse", status_code=202, responses=problems(409))
async def reparse_document(document_id: str, principal: Member, ingest: IngestDeps) -> Accepted:
    """Parse the document anew. What search shows changes once the new generation is whole."""
    async with ingest.db.work() as sql:
        row = await documents.start_generation(sql, principal.tenant, document_id)
    return views.accepted(row)


@router.post("/{document_id}/resume", status_code=202, responses=problems(409))
async def resume_document(document_id: str, principal: Member, ingest: IngestDeps) -> Accepted:
    """Go on at the stage that failed, without repeating those before it.

    A cancelled document, and one whose intermediate results are gone, is parsed anew (the next
    generation). 409 when there is nothing to resume.
    """
    return views.accepted(await resuming.resume(ingest, principal.tenant, document_id))


@router.post("/{document_id}/cancel", responses=problems(409))
async def cancel_document(document_id: str, principal: Member, ingest: IngestDeps) -> DocumentView:
    """Stop work on the document. What was searchable before stays so. Safe to repeat."""
    async with ingest.db.work() as sql:
        await documents.cancel(sql, principal.tenant, document_id)
    return await _view(ingest, principal, document_id)


@router.get("/{document_id}/plan")
async def get_plan(document_id: str, principal: Reader, ingest: IngestDeps) -> PlanView:
    """How the document is cut: what was asked for, used and recommended, and why."""
    async with ingest.db.reading() as sql:
        return views.plan(await documents.load(sql, principal.tenant, document_id))


@router.post("/{document_id}/plan/preview", responses=problems(409))
async def preview_plan(
    document_id: str,
    plan: PlanRequest,
    principal: Member,
    ingest: IngestDeps,
    after: Annotated[int, Query(ge=-1, le=2**31 - 1)] = -1,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    parents: bool = False,
) -> PlanPreview:
    """The chunks that these overrides would give, in order, from the stored parse.

    Changes nothing. Of a long document only the beginning is cut, and `complete` is false.
    """
    made = await previewing.preview(ingest, principal.tenant, document_id, plan.fields())
    return views.preview(made, after=after, limit=limit, parents=parents)


@router.put("/{document_id}/plan", status_code=202, responses=problems(409))
async def put_plan(
    document_id: str, plan: PlanRequest, principal: Member, ingest: IngestDeps
) -> PlanView:
    """Cut the document anew with these overrides; `{}` goes back to what is recommended."""
    return views.plan(await planning.override(ingest, principal.tenant, document_id, plan.fields()))


async def _view(ingest: Ingest, principal: Principal, document_id: str) -> DocumentView:
    async with ingest.db.reading() as sql:
        row = await documents.load(sql, principal.tenant, document_id)
        history = await documents.timeline(sql, principal.tenant, document_id)
        marks = await alike.alike(sql, principal.tenant, [document_id])
    return views.document(row, history, marks.get(document_id))
