"""Rows as responses."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import RowMapping

from libs.kernel import isoformat
from services.ingest.api.schemas import (
    Accepted,
    ChunkView,
    DocumentSummary,
    DocumentView,
    PlanView,
    TimelineEntry,
)


def accepted(row: RowMapping) -> Accepted:
    return Accepted(**{name: row[name] for name in Accepted.model_fields})


def summary(row: RowMapping) -> DocumentSummary:
    return DocumentSummary(**_summary(row))


def document(row: RowMapping, timeline: Sequence[RowMapping]) -> DocumentView:
    return DocumentView(
        **_summary(row), timeline=[entry(event) for event in timeline], plan=row["plan"]
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
    return PlanView(
        state=row["state"],
        generation=row["generation"],
        requested=stored["requested"] if used else stored,
        used={name: stored[name] for name in stored if name != "requested"} if used else None,
    )


def chunk(row: RowMapping) -> ChunkView:
    return ChunkView(**{name: row[name] for name in ChunkView.model_fields})


def _summary(row: RowMapping) -> dict[str, Any]:
    taken = {name: row[name] for name in DocumentSummary.model_fields if name in row}
    return {
        **taken,
        "size": row["size_bytes"],
        "created_at": isoformat(row["created_at"]),
        "updated_at": isoformat(row["updated_at"]),
    }
