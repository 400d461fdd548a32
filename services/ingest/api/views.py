"""Rows as responses."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import RowMapping

from libs.documents.model import Chunk
from libs.kernel import isoformat
from libs.storage.sql.alike import Alike
from services.ingest.api.previewing import Preview
from services.ingest.api.schemas import (
    Accepted,
    ChunkView,
    DocumentSummary,
    DocumentView,
    NearDuplicate,
    PlanPreview,
    PlanView,
    TimelineEntry,
)


def accepted(row: RowMapping) -> Accepted:
    return Accepted(**{name: row[name] for name in Accepted.model_fields})


def summary(row: RowMapping, alike: Alike | None) -> DocumentSummary:
    return DocumentSummary(**_summary(row), **_alike(alike))


def document(row: RowMapping, timeline: Sequence[RowMapping], alike: Alike | None) -> DocumentView:
    return DocumentView(
        **_summary(row),
        **_alike(alike),
        timeline=[entry(event) for event in timeline],
        plan=row["plan"],
    )


def entry(row: RowMapping) -> TimelineEntry:
    return TimelineEntry(
        seq=row["seq"],
        stage=row["stage"],
        generation=row["generation"],
        at=isoformat(row["at"]),
        data=row["data"],
    )


def plan(row: RowMapping) -> PlanView:
    """The stored plan is the user's wish until the chunker replaces it by what it used."""
    stored = row["plan"] or {}
    used = "requested" in stored
    aside = {"requested", "recommended", "profile"}
    return PlanView(
        state=row["state"],
        generation=row["generation"],
        requested=stored["requested"] if used else stored,
        used={name: stored[name] for name in stored if name not in aside} if used else None,
        recommended=stored.get("recommended"),
        profile=stored.get("profile"),
    )


def chunk(row: RowMapping) -> ChunkView:
    return ChunkView(**{name: row[name] for name in ChunkView.model_fields})


def preview(made: Preview, *, after: int, limit: int, parents: bool) -> PlanPreview:
    chunks = made.cut.chunks.parents if parents else made.cut.chunks.children
    items = chunks[after + 1 : after + 1 + limit]
    return PlanPreview(
        generation=made.generation,
        complete=made.is_complete,
        chars=made.char_count,
        plan=asdict(made.cut.plan),
        recommended=asdict(made.cut.recommended),
        profile=asdict(made.cut.profile),
        counts={"parents": len(made.cut.chunks.parents), "chunks": len(made.cut.chunks.children)},
        items=[_chunk_view(chunk) for chunk in items],
        next=items[-1].ordinal if items and items[-1].ordinal + 1 < len(chunks) else None,
    )


def _chunk_view(chunk: Chunk) -> ChunkView:
    fields = asdict(chunk)
    return ChunkView(id=fields.pop("chunk_id"), **fields)


def _alike(alike: Alike | None) -> dict[str, Any]:
    if alike is None:
        return {}
    near = [
        NearDuplicate(id=other.document_id, name=other.name, similarity=other.similarity)
        for other in alike.near
    ]
    return {"same_text_as": list(alike.same_text_as), "near_duplicates": near}


def _summary(row: RowMapping) -> dict[str, Any]:
    taken = {name: row[name] for name in DocumentSummary.model_fields if name in row}
    return {
        **taken,
        "size": row["size_bytes"],
        "created_at": isoformat(row["created_at"]),
        "updated_at": isoformat(row["updated_at"]),
    }
